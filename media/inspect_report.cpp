// Reports as text and as JSON.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include <nlohmann/json.hpp>

#include "media/inspect.h"

namespace vigil::media {
namespace {

template <typename... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 256> line{};
  std::snprintf(line.data(), line.size(), pattern, values...);
  return line.data();
}

std::string row(const std::string& label, const std::string& text) {
  return format("  %-12s ", label.c_str()) + text + '\n';
}

// "IBBPBBPBBP" stays; a long one is cut in the middle of nothing: its head tells the pattern.
std::string shortened(const std::string& pattern) {
  constexpr std::size_t kShown = 60;
  if (pattern.size() <= kShown) return pattern;
  return pattern.substr(0, kShown) + format("... (%zu frames)", pattern.size());
}

std::string motion_row(const char* label, const MotionStatistics& motion) {
  return row("", format("%-8s %8llu %11.1f %% %9.2f px %11.2f px", label,
                        static_cast<unsigned long long>(motion.frames), 100 * motion.moving_share,
                        motion.mean_pixels, motion.percentile95_pixels));
}

nlohmann::json to_json_object(const MotionStatistics& motion) {
  return {{"frames", motion.frames},
          {"moving_share", motion.moving_share},
          {"mean_pixels", motion.mean_pixels},
          {"percentile95_pixels", motion.percentile95_pixels}};
}

const char* name_of(InspectEnd end) {
  switch (end) {
    case InspectEnd::end:
      return "end";
    case InspectEnd::limit:
      return "limit";
    case InspectEnd::interrupt:
      return "interrupt";
  }
  return "?";
}

std::string kilobits(std::int64_t bits) {
  return bits > 0 ? format("%.0f kbit/s", static_cast<double>(bits) / 1000) : std::string("bit rate unknown");
}

}  // namespace

std::string to_text(const InspectReport& report) {
  const SourceInfo& source = report.source;
  const auto count = [&](FrameType type) {
    return static_cast<unsigned long long>(report.frames_by_type[static_cast<std::size_t>(type)]);
  };
  std::string text = source.name + '\n';
  text += row("container",
              source.container + (source.duration_seconds > 0 ? format(", %.2f s", source.duration_seconds)
                                                              : std::string(", length unknown")));
  text += row("video", source.codec + (source.profile.empty() ? "" : " (" + source.profile + ")") + ", " +
                           format("%dx%d, ", source.size.width, source.size.height) + source.pixel_format +
                           ", " + kilobits(source.bit_rate));
  text += row("frames",
              format("%llu in %.2f s: I %llu, P %llu, B %llu",
                     static_cast<unsigned long long>(report.stats.decoded_frames), report.seconds,
                     count(FrameType::intra), count(FrameType::predicted), count(FrameType::bidirectional)) +
                  (count(FrameType::unknown) > 0 ? format(", unknown %llu", count(FrameType::unknown)) : ""));
  if (report.ended_by != InspectEnd::end) {
    text += row("looked at", format("the first %.2f s", report.seconds) +
                                 (report.ended_by == InspectEnd::interrupt ? ", until it was interrupted"
                                  : source.duration_seconds > 0            ? ", not the whole"
                                                                           : ", since it is live"));
  }
  text += row("rate",
              format("%.3f a second (announced %.3f), %.1f to %.1f ms apart", report.measured_fps,
                     source.average_fps, 1000 * report.shortest_interval, 1000 * report.longest_interval));
  if (report.keys.count > 1) {
    text +=
        row("key frames", format("%llu, every %llu / %.0f / %llu frames (shortest / median / longest)",
                                 static_cast<unsigned long long>(report.keys.count),
                                 static_cast<unsigned long long>(report.keys.shortest), report.keys.median,
                                 static_cast<unsigned long long>(report.keys.longest)));
  } else {
    text += row("key frames", format("%llu", static_cast<unsigned long long>(report.keys.count)));
  }
  text += row("first GOP", shortened(report.first_gop));
  if (!report.motion_available) {
    text += row("motion", "not known: FFmpeg's decoder of " + source.codec + " exports no motion vectors");
  } else if (report.moving.frames == 0) {
    text += row("motion", "none: every frame is coded for itself");
  } else {
    text += row("motion",
                format("%-8s %8s %13s %12s %14s", "frames", "count", "moving area", "mean", "95th percent."));
    text += motion_row("P", report.predicted);
    if (report.bidirectional.frames > 0) text += motion_row("B", report.bidirectional);
    if (report.bidirectional.frames > 0) text += motion_row("P and B", report.moving);
  }
  const ReadStats& stats = report.stats;
  text +=
      row("damage",
          stats.damaged_packets == 0
              ? "none"
              : format("%llu of %llu packets; last: ", static_cast<unsigned long long>(stats.damaged_packets),
                       static_cast<unsigned long long>(stats.packets)) +
                    stats.last_damage);
  if (stats.timestamp_jumps > 0) {
    text += row("time", format("%llu jumps of the timestamps",
                               static_cast<unsigned long long>(stats.timestamp_jumps)));
  }
  if (stats.size_changes > 0) {
    text += row("size", format("changes %llu times", static_cast<unsigned long long>(stats.size_changes)));
  }
  return text;
}

std::string to_json(const InspectReport& report) {
  const SourceInfo& source = report.source;
  const ReadStats& stats = report.stats;
  const nlohmann::ordered_json json = {
      {"name", source.name},
      {"container", source.container},
      {"codec", source.codec},
      {"profile", source.profile},
      {"pixel_format", source.pixel_format},
      {"width", source.size.width},
      {"height", source.size.height},
      {"announced_fps", source.average_fps},
      {"announced_seconds", source.duration_seconds},
      {"bit_rate", source.bit_rate},
      {"frames", stats.decoded_frames},
      {"seconds", report.seconds},
      {"ended_by", name_of(report.ended_by)},
      {"fps", report.measured_fps},
      {"interval_seconds", {{"shortest", report.shortest_interval}, {"longest", report.longest_interval}}},
      {"frame_types",
       {{"I", report.frames_by_type[static_cast<std::size_t>(FrameType::intra)]},
        {"P", report.frames_by_type[static_cast<std::size_t>(FrameType::predicted)]},
        {"B", report.frames_by_type[static_cast<std::size_t>(FrameType::bidirectional)]},
        {"unknown", report.frames_by_type[static_cast<std::size_t>(FrameType::unknown)]}}},
      {"gop",
       {{"key_frames", report.keys.count},
        {"distance",
         {{"shortest", report.keys.shortest},
          {"median", report.keys.median},
          {"longest", report.keys.longest}}},
        {"first", report.first_gop}}},
      {"motion",
       {{"available", report.motion_available},
        {"P", to_json_object(report.predicted)},
        {"B", to_json_object(report.bidirectional)},
        {"all", to_json_object(report.moving)}}},
      {"damage",
       {{"packets", stats.packets},
        {"damaged_packets", stats.damaged_packets},
        {"last", stats.last_damage},
        {"timestamp_jumps", stats.timestamp_jumps},
        {"size_changes", stats.size_changes}}},
  };
  // Names and FFmpeg's texts may hold bytes that are no UTF-8.
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace vigil::media
