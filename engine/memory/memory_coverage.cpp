// How much of a camera's past is there, and why the rest is not.
#include <algorithm>
#include <limits>

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
                          std::span<const std::uint64_t> damaged, std::optional<std::int64_t> now,
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
  // So that what lies just outside can say whether the camera went on.
  const history::WallRange wider{wall.from - kJitter, wall.to + kJitter};
  for (const HostTier::Page* page : host_.pages(camera, wider))
    if (!is_known_damaged(page->info.number)) add(page->info.number, history::wall_of(page->info));
  if (store_ != nullptr) {
    for (const PartQueue::OnItsWay& page : queue_->pages(camera, wider)) {
      const history::WallRange range = history::wall_of(page.info);
      if (entry == cameras_.end() || !is_erased(entry->second, range)) add(page_of(page.info.number), range);
    }
    for (const history::KeptPage& page : store_->pages(camera, wider)) {
      const history::WallRange range = history::wall_of(page.info);
      if (entry != cameras_.end() && is_erased(entry->second, range)) continue;
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
    // There was something before what is there, and it is gone.
    std::int64_t first = std::numeric_limits<std::int64_t>::max();
    std::uint64_t number = page_of(store_->last_page(camera)) + 1;
    for (const history::HourSummary& each : store_->hours(camera)) {
      first = std::min(first, each.wall.from);
      number = std::min(number, page_of(each.first_page));
    }
    if (number > 1 && first > wall.from) known.push_back({{wall.from, first - 1}, Gap::evicted});
  }
  if (entry == cameras_.end()) {
    const std::vector<KnownGap> gaps = noted(camera, wall);
    known.insert(known.end(), gaps.begin(), gaps.end());
  } else {
    known.insert(known.end(), entry->second.gaps.begin(), entry->second.gaps.end());
    for (const Erased& each : entry->second.erased) known.push_back({each.wall, Gap::erased});
  }
  if (now && entry != cameras_.end() && entry->second.is_watched) {
    std::int64_t last = std::numeric_limits<std::int64_t>::min() / 2;
    for (const history::WallRange& each : there)
      if (each.from <= *now) last = std::max(last, each.to);
    if (last < *now && *now - last <= kJitter) there.push_back({last + 1, *now});
  }
  return cover(wall, there, known, kJitter);
}

}  // namespace vigil::memory
