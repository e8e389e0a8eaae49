#include "fleet/messages/clip_wish.h"

#include <cstdint>
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
  } catch (const json::exception&) {
    return std::nullopt;
  }
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
      found.back() = {each.at(kClip).get<std::string>(), each.at(kThumb).get<std::string>(),
                      each.at(kFrom).get<std::int64_t>(), each.at(kShown).get<std::int64_t>()};
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
