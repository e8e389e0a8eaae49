#include "actors/evidence/clip_index.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <stdexcept>

#include <nlohmann/json.hpp>

#include "base/timestamp.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

constexpr const char* kCamera = "camera";
constexpr const char* kTenant = "tenant";
constexpr const char* kFrom = "from";
constexpr const char* kTo = "to";

std::string time_text(std::int64_t time) {
  return base::format_rfc3339(base::Clock::WallTime(
      std::chrono::duration_cast<base::Clock::WallTime::duration>(std::chrono::nanoseconds(time))));
}

std::int64_t time_of(const json& text) {
  const auto time = base::parse_rfc3339(text.get<std::string>());
  // In nanoseconds there are no others.
  const auto since = time ? std::chrono::floor<std::chrono::hours>(time->time_since_epoch()).count() : -1;
  if (since < 0 ||
      since > std::chrono::floor<std::chrono::hours>(std::chrono::nanoseconds::max()).count() - 1)
    throw std::runtime_error("no time");
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time->time_since_epoch()).count();
}

}  // namespace

std::string print(const ClipNote& note) {
  const json text = {{kCamera, note.camera.camera},
                     {kTenant, note.camera.tenant},
                     {kFrom, time_text(note.wall.from)},
                     {kTo, time_text(note.wall.to)}};
  return text.dump(-1, ' ', /*ensure_ascii=*/true, json::error_handler_t::replace);
}

std::optional<ClipNote> parse_clip_note(std::string_view text) {
  try {
    const json read = json::parse(text);
    ClipNote note{{read.at(kTenant).get<std::string>(), read.at(kCamera).get<std::string>()},
                  {time_of(read.at(kFrom)), time_of(read.at(kTo))}};
    if (note.wall.to <= note.wall.from) return std::nullopt;
    return note;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

void ClipIndex::add(const std::string& name, const ClipNote& note, const std::string& clip,
                    const std::string& thumb) {
  const std::scoped_lock lock(mutex_);
  take_out(name);
  OfCamera& of = cameras_[note.camera];
  of.clips[{note.wall.from, name}] = {note.wall.to, clip, thumb};
  of.longest = std::max(of.longest, note.wall.to - note.wall.from);
  names_.emplace(name, std::pair(note.camera, note.wall.from));
}

void ClipIndex::remove(const std::string& name) {
  const std::scoped_lock lock(mutex_);
  take_out(name);
}

void ClipIndex::take_out(const std::string& name) {
  const auto known = names_.extract(name);
  if (!known) return;
  const auto& [camera, from] = known.mapped();
  const auto of = cameras_.find(camera);
  of->second.clips.erase({from, name});
  if (of->second.clips.empty()) cameras_.erase(of);
}

std::optional<ShownClip> ClipIndex::showing(const history::CameraId& camera,
                                            const history::WallRange& wall) const {
  const std::scoped_lock lock(mutex_);
  const auto of = cameras_.find(camera);
  if (of == cameras_.end()) return std::nullopt;
  const auto& [clips, longest] = of->second;
  constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::min();
  const std::int64_t earliest = wall.from < kEver + longest ? kEver : wall.from - longest;
  std::optional<ShownClip> best;
  for (auto at = clips.lower_bound({earliest, {}}); at != clips.end(); ++at) {
    const auto& [begin, each] = *at;
    if (begin.first >= wall.to) break;
    const std::int64_t shown = std::min(each.to, wall.to) - std::max(begin.first, wall.from);
    if (shown <= 0) continue;
    ShownClip clip{each.clip, each.thumb, begin.first, shown};
    if (!best || shows_better(clip, *best)) best = std::move(clip);
  }
  return best;
}

}  // namespace vigil::actors
