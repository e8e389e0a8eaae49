#include "media/inspect.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "media/motion_grid.h"

namespace vigil::media {
namespace {

constexpr double kStep = 0.25;
/// Longest first_gop; cameras may send one key frame a minute.
constexpr std::size_t kLongestPattern = 600;

char letter(FrameType type) {
  switch (type) {
    case FrameType::intra:
      return 'I';
    case FrameType::predicted:
      return 'P';
    case FrameType::bidirectional:
      return 'B';
    case FrameType::unknown:
      break;
  }
  return '?';
}

}  // namespace

void Inspector::Lengths::add(const FrameMotion& frame, double share) {
  ++frames;
  shares += share;
  for (const MotionVector& v : frame.vectors) {
    const double block = double{1} * v.width * v.height;
    const double length = std::hypot(v.dx_pixels(), v.dy_pixels());
    area += block;
    area_times_length += block * length;
    // Rounded up, so that a percentile is a length that so many vectors do not exceed.
    const auto step = static_cast<std::size_t>(std::ceil(length / kStep));
    steps[std::min(step, steps.size() - 1)] += block;
  }
}

void Inspector::Lengths::add(const Lengths& other) {
  frames += other.frames;
  shares += other.shares;
  area += other.area;
  area_times_length += other.area_times_length;
  for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += other.steps[i];
}

MotionStatistics Inspector::Lengths::statistics() const {
  MotionStatistics result;
  result.frames = frames;
  if (frames > 0) result.moving_share = shares / static_cast<double>(frames);
  if (!(area > 0)) return result;
  result.mean_pixels = area_times_length / area;
  double below = 0;
  std::size_t step = 0;
  while (step + 1 < steps.size() && below + steps[step] < 0.95 * area) below += steps[step++];
  result.percentile95_pixels = static_cast<double>(step) * kStep;
  return result;
}

void Inspector::add(const FrameMotion& frame) {
  ++frames_by_type_[static_cast<std::size_t>(frame.type)];
  if (frames_ == 0) {
    first_seconds_ = frame.seconds;
  } else {
    const double interval = frame.seconds - last_seconds_;
    shortest_interval_ = frames_ == 1 ? interval : std::min(shortest_interval_, interval);
    longest_interval_ = std::max(longest_interval_, interval);
  }
  last_seconds_ = frame.seconds;
  if (frame.key) key_positions_.push_back(frames_);
  if (key_positions_.size() == 1 && first_gop_.size() < kLongestPattern) first_gop_ += letter(frame.type);
  ++frames_;

  const bool predicted = frame.type == FrameType::predicted;
  if (!predicted && frame.type != FrameType::bidirectional) return;
  MotionGrid grid({frame.width, frame.height});
  grid.add(frame);
  (predicted ? predicted_ : bidirectional_).add(frame, grid.moving_share());
}

InspectReport Inspector::report() const {
  InspectReport report;
  report.frames_by_type = frames_by_type_;
  report.seconds = last_seconds_ - first_seconds_;
  if (report.seconds > 0) report.measured_fps = static_cast<double>(frames_ - 1) / report.seconds;
  report.shortest_interval = shortest_interval_;
  report.longest_interval = longest_interval_;
  report.first_gop = first_gop_;

  report.keys.count = key_positions_.size();
  std::vector<std::uint64_t> distances;
  for (std::size_t i = 1; i < key_positions_.size(); ++i)
    distances.push_back(key_positions_[i] - key_positions_[i - 1]);
  if (!distances.empty()) {
    std::sort(distances.begin(), distances.end());
    const std::size_t half = distances.size() / 2;
    report.keys.shortest = distances.front();
    report.keys.longest = distances.back();
    report.keys.median = distances.size() % 2 == 1
                             ? static_cast<double>(distances[half])
                             : static_cast<double>(distances[half - 1] + distances[half]) / 2;
  }

  report.predicted = predicted_.statistics();
  report.bidirectional = bidirectional_.statistics();
  Lengths both = predicted_;
  both.add(bidirectional_);
  report.moving = both.statistics();
  return report;
}

InspectReport inspect(const std::string& url, const InspectOptions& options, ContactSheet* sheet) {
  ReadOptions read;
  read.threads = options.threads;
  read.shown_name = options.shown_name;
  read.pixels = sheet != nullptr;
  read.fps = options.sheet_fps;
  if (sheet != nullptr) read.size = [sheet](Size size) { return sheet->tile_size(size); };
  read.open_timeout = options.open_timeout;
  read.read_timeout = options.read_timeout;
  read.frame_timeout = options.frame_timeout;
  read.stop = options.stop;
  const auto reader = VideoReader::open(url, read);
  std::optional<double> limit = options.seconds;
  if (!limit && reader->info().live) limit = options.seconds_of_endless;

  Inspector inspector;
  InspectEnd ended_by = InspectEnd::end;
  try {
    while (const auto sample = reader->next()) {
      for (const FrameMotion& frame : sample->motion->frames) inspector.add(frame);
      if (sheet != nullptr) sheet->add(*sample);
      if (limit && sample->seconds >= *limit) ended_by = InspectEnd::limit;
      // Only what waits asks for it by itself.
      if (options.stop.stop_requested()) ended_by = InspectEnd::interrupt;
      if (ended_by != InspectEnd::end) break;
    }
  } catch (const Error& error) {
    if (error.kind() != Error::Kind::cancelled || reader->stats().sampled_frames == 0) throw;
    ended_by = InspectEnd::interrupt;
  }
  for (const FrameMotion& frame : reader->rest()) inspector.add(frame);

  InspectReport report = inspector.report();
  report.source = reader->info();
  report.stats = reader->stats();
  report.ended_by = ended_by;
  // Frames that were decoded and not shown yet are in none of the other numbers.
  if (ended_by != InspectEnd::end)
    report.stats.decoded_frames =
        std::accumulate(report.frames_by_type.begin(), report.frames_by_type.end(), std::uint64_t{0});
  report.motion_available = report.source.exports_motion;
  return report;
}

}  // namespace vigil::media
