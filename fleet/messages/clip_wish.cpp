#include "fleet/messages/clip_wish.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace vigil::fleet {
namespace {

using nlohmann::json;

constexpr const char* kCamera = "camera";
constexpr const char* kTenant = "tenant";
constexpr const char* kWalls = "walls";
constexpr const char* kClips = "clips";
constexpr const char* kClip = "clip";
constexpr const char* kThumb = "thumb";
constexpr const char* kFrom = "from";
constexpr const char* kShown = "shown";

std::string line_of(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// What `read` makes of it; nothing if it throws.
template <class Read>
auto parsed(std::string_view text, const Read& read) -> std::optional<decltype(read(json()))> {
  try {
    return read(json::parse(text));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

/// More than an answer has windows, and longer than any path within a folder is.
constexpr std::size_t kMostWalls = 64, kLongestPath = 1024;

/// Within a folder, and not out of it: what a node says is shown to others.
std::string path_of(const json& read) {
  auto text = read.get<std::string>();
  const std::filesystem::path path(text);
  if (text.size() > kLongestPath || path.is_absolute() || path.lexically_normal() != path ||
      (!path.empty() && *path.begin() == ".."))
    throw std::runtime_error("no path within a folder");
  return text;
}

}  // namespace

std::string print(const ClipWish& wish) {
  json walls = json::array();
  for (const history::WallRange& each : wish.walls) walls.push_back({each.from, each.to});
  return line_of({{kTenant, wish.camera.tenant}, {kCamera, wish.camera.camera}, {kWalls, std::move(walls)}});
}

std::optional<ClipWish> parse_clip_wish(std::string_view text) {
  return parsed(text, [](const json& read) {
    ClipWish wish{{read.at(kTenant).get<std::string>(), read.at(kCamera).get<std::string>()}, {}};
    if (read.at(kWalls).size() > kMostWalls) throw std::runtime_error("too many times");
    for (const json& each : read.at(kWalls))
      wish.walls.push_back({each.at(0).get<std::int64_t>(), each.at(1).get<std::int64_t>()});
    return wish;
  });
}

std::string print(const FoundClips& found) {
  json clips = json::array();
  for (const auto& each : found)
    clips.push_back(
        each ? json{{kClip, each->clip}, {kThumb, each->thumb}, {kFrom, each->from}, {kShown, each->shown}}
             : json());
  return line_of({{kClips, std::move(clips)}});
}

std::optional<FoundClips> parse_found_clips(std::string_view text) {
  return parsed(text, [](const json& read) {
    FoundClips found;
    for (const json& each : read.at(kClips)) {
      found.emplace_back();
      if (each.is_null()) continue;
      found.back() = {path_of(each.at(kClip)), path_of(each.at(kThumb)), each.at(kFrom).get<std::int64_t>(),
                      each.at(kShown).get<std::int64_t>()};
    }
    return found;
  });
}

FoundClips found_of(const ClipWish& wish, const actors::Clips* clips) {
  FoundClips found;
  for (const history::WallRange& each : wish.walls)
    found.push_back(clips == nullptr ? std::nullopt : clips->showing(wish.camera, each));
  return found;
}

}  // namespace vigil::fleet
