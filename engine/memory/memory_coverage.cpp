// How much of a camera's past is there, and why the rest is not.
#include <algorithm>
#include <limits>

#include "engine/memory/hours.h"
#include "engine/memory/kept.h"
#include "engine/memory/memory.h"

namespace vigil::memory {

std::vector<KnownGap> Memory::noted(const history::CameraId& camera, const history::WallRange& wall) const {
  std::vector<KnownGap> gaps;
  if (store_ == nullptr) return gaps;
  for (const history::Note& each : store_->notes(camera, wall))
    // A later program may know other reasons.
    gaps.push_back({each.wall, each.why < kGapNames.size() ? static_cast<Gap>(each.why) : Gap::down});
  return gaps;
}

Coverage Memory::coverage(const history::CameraId& camera, const history::WallRange& wall,
                          std::int64_t wall_now, std::span<const std::uint64_t> damaged,
                          std::span<const std::uint64_t> keyless) const {
  std::vector<history::WallRange> there;
  std::vector<KnownGap> known;
  const auto entry = cameras_.find(camera);
  const auto is_known_damaged = [&](std::uint64_t number) {
    return std::find(damaged.begin(), damaged.end(), number) != damaged.end();
  };
  const auto add = [&](std::uint64_t number, const history::WallRange& range) {
    if (std::ranges::find(keyless, number) == keyless.end()) return there.push_back(range);
    known.push_back({range, Gap::keyless});
  };
  // What is older than it keeps is there no more, whatever still lies where it lay.
  const std::int64_t from = kept_from(camera, wall_now);
  std::optional<history::WallRange> old;
  const auto kept = [&](const history::PageInfo& info) {
    const history::WallRange whole = history::wall_of(info);
    const auto range = kept_wall(info, from);
    if (!range || range->from > whole.from) widen(old, {whole.from, range ? range->from - 1 : whole.to});
    return range;
  };
  const bool goes_on = entry != cameras_.end() && entry->second.is_watched;
  const std::int64_t comes = goes_on ? nanoseconds(entry->second.comes) : 0;
  // So that what lies just outside can say whether the camera went on.
  const history::WallRange wider{wall.from - kJitter - comes,
                                 goes_on ? std::max(wall.to + kJitter, wall_now) : wall.to + kJitter};
  for (const HostTier::Page* page : host_.pages(camera, wider)) {
    const auto range = kept(page->info);
    if (range && !is_known_damaged(page->info.number)) add(page->info.number, *range);
  }
  if (store_ != nullptr) {
    for (const PartQueue::OnItsWay& page : queue_->pages(camera, wider)) {
      if (entry != cameras_.end() && is_erased(entry->second, history::wall_of(page.info))) continue;
      if (const auto range = kept(page.info)) add(page_of(page.info.number), *range);
    }
    for (const history::KeptPage& page : store_->pages(camera, wider)) {
      if (entry != cameras_.end() && is_erased(entry->second, history::wall_of(page.info))) continue;
      const auto in_time = kept(page.info);
      if (!in_time) continue;
      const history::WallRange& range = *in_time;
      if (page.info.fingerprint != options_.fingerprint) {
        known.push_back({range, Gap::other_model});
      } else if (is_damaged(page) || is_known_damaged(page_of(page.info.number))) {
        known.push_back({range, Gap::damaged});
      } else {
        add(page_of(page.info.number), range);
      }
    }
    for (const history::Erasure& erasure : store_->erasures())
      if (erasure.camera == camera) known.push_back({erasure.wall, Gap::erased});
  }
  if (old) known.push_back({*old, Gap::evicted});
  if (entry == cameras_.end()) {
    const std::vector<KnownGap> gaps = noted(camera, wall);
    known.insert(known.end(), gaps.begin(), gaps.end());
  } else {
    known.insert(known.end(), entry->second.gaps.begin(), entry->second.gaps.end());
    for (const Erased& each : entry->second.erased) known.push_back({each.wall, Gap::erased});
  }
  if (goes_on) {
    std::int64_t last = std::numeric_limits<std::int64_t>::min() / 2;
    for (const history::WallRange& each : there)
      if (each.from <= wall_now) last = std::max(last, each.to);
    if (last < wall_now && wall_now - last <= kJitter) {
      there.push_back({last + 1, wall_now});
    } else if (last < wall_now && wall_now - last <= comes + kJitter) {
      // Of what is behind something that is known.
      for (const KnownGap& each : known)
        if (each.wall.from <= wall_now) last = std::max(last, each.wall.to);
      if (last < wall_now) known.push_back({{last + 1, wall_now}, Gap::coming});
    }
    // Behind now, and behind all that a file has shown that is read ahead of its time.
    std::int64_t newest = wall_now;
    for (const history::WallRange& each : there) newest = std::max(newest, each.to);
    for (const KnownGap& each : known) newest = std::max(newest, each.wall.to);
    if (newest < wall.to) known.push_back({{newest + 1, wall.to}, Gap::coming});
  }
  return cover(wall, there, known, kJitter);
}

}  // namespace vigil::memory
