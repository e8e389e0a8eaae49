#include "engine/memory/memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/memory/hours.h"

namespace vigil::memory {
namespace {

/// Between two pages of a camera that goes on.
constexpr std::int64_t kJitter = 3'000'000'000;
/// Reasons that are remembered of a camera at most; the oldest are forgotten first.
constexpr std::size_t kMostGaps = 1024;

std::int64_t nanoseconds(base::Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

bool meets_any(const history::WallRange& wall, std::span<const history::WallRange> ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [&](const auto& each) { return each.meets(wall); });
}

bool is_damaged(const history::KeptPage& page) {
  return std::any_of(page.values.begin(), page.values.end(),
                     [](const history::KeptValue& value) { return value.damaged; });
}

}  // namespace

Memory::Memory(history::HistoryStore* store, Options options)
    : store_(store),
      options_(std::move(options)),
      host_(options_.host_bytes, options_.eviction, options_.host) {
  if (store_ != nullptr) queue_ = std::make_unique<PartQueue>(*store_, options_.parts);
}

Memory::Camera& Memory::find_camera(const history::CameraId& camera) {
  const auto [entry, is_new] = cameras_.try_emplace(camera);
  if (is_new && store_ != nullptr) {
    entry->second.last = store_->last_page(camera) / 4;
    for (const history::Erasure& erasure : store_->erasures())
      if (erasure.camera == camera) entry->second.erased.push_back(erasure.wall);
  }
  return entry->second;
}

void Memory::share() {
  std::vector<history::CameraId> watched;
  for (const auto& [id, camera] : cameras_)
    if (camera.is_watched) watched.push_back(id);
  host_.share(watched);
}

void Memory::watch(const history::CameraId& camera, base::Duration keep) {
  Camera& entry = find_camera(camera);
  entry.keep = keep;
  if (!std::exchange(entry.is_watched, true)) share();
}

void Memory::leave(const history::CameraId& camera) {
  const auto entry = cameras_.find(camera);
  if (entry == cameras_.end() || !std::exchange(entry->second.is_watched, false)) return;
  if (queue_) queue_->flush(camera);
  share();
}

std::vector<kv::Form> Memory::wanted() const {
  std::map<kv::Form, bool> wanted;
  for (const auto& [form, keep] : options_.host) wanted[form] = true;
  const Pressure pressure = queue_ ? queue_->pressure() : Pressure::full;
  bool has_keys = false;
  for (const auto& [form, keep] : options_.disk) {
    const bool is_keys = form != kv::Form::embeddings;
    has_keys = has_keys || is_keys;
    if (pressure == Pressure::none || (!is_keys && pressure != Pressure::full)) wanted[form] = true;
  }
  if (pressure == Pressure::coarser && has_keys) wanted[kv::Form::int4] = true;
  std::vector<kv::Form> forms;
  forms.reserve(wanted.size());
  for (const auto& [form, is_wanted] : wanted) forms.push_back(form);
  return forms;
}

void Memory::note(Camera& camera, const history::WallRange& wall, Gap why) {
  if (wall.to < wall.from) return;
  std::vector<KnownGap>& gaps = camera.gaps;
  if (!gaps.empty() && gaps.back().why == why && wall.from - gaps.back().wall.to <= kJitter &&
      wall.to >= gaps.back().wall.from) {
    gaps.back().wall.to = std::max(gaps.back().wall.to, wall.to);
    return;
  }
  if (gaps.size() >= kMostGaps) gaps.erase(gaps.begin());
  gaps.push_back({wall, why});
}

Memory::Taken Memory::take(FreshPage page, base::Clock::TimePoint now) {
  Camera& camera = find_camera(page.camera);
  Taken taken;
  const history::WallRange wall = history::wall_of(page.info);
  if (meets_any(wall, camera.erased)) {
    taken.lost = Gap::erased;
    return taken;
  }
  page.info.number = ++camera.last;
  page.info.fingerprint = options_.fingerprint;
  const Pressure pressure = queue_ ? queue_->pressure() : Pressure::full;
  HostTier::Page kept{page.info, page.change, {}};
  for (run::MovedTokens& tokens : page.forms) {
    tokens.arrived.wait();
    const bool is_coarser = pressure == Pressure::coarser && tokens.form == kv::Form::int4;
    if (queue_ && (options_.disk.contains(tokens.form) || is_coarser)) {
      history::PageInfo info = page.info;
      info.number = number_on_disk(page.info.number, tokens.form);
      if (queue_->offer(page.camera, std::move(info), tokens, now)) taken.written.push_back(tokens.form);
    }
    const kv::Form form = tokens.form;
    kept.forms.emplace(form, std::move(tokens));
  }
  const HostTier::Put put = host_.put(page.camera, std::move(kept));
  taken.is_on_host = put.is_kept;
  // With a disk they are there, or were too late for it.
  if (!queue_) taken.evicted = put.gone.size();
  if (taken.written.empty() && !taken.is_on_host) {
    taken.lost = queue_ ? Gap::late : Gap::evicted;
    note(camera, wall, *taken.lost);
  }
  return taken;
}

void Memory::lose(const PageMaker::News::Lost& lost) {
  if (lost.why == Forgotten::untimed) return;
  note(find_camera(lost.camera), lost.wall, lost.why == Forgotten::keyless ? Gap::keyless : Gap::late);
}

void Memory::wrote(const PartQueue::Written& written) {
  if (!written.failure.empty()) note(find_camera(written.camera), written.wall, Gap::late);
}

std::vector<history::Expiry> Memory::age(std::int64_t wall_now) {
  std::vector<HostTier::Aged> keeps;
  std::vector<history::Expiry> expiries;
  for (const auto& [id, camera] : cameras_) {
    if (camera.keep <= base::Duration::zero()) continue;
    const std::int64_t before = wall_now - nanoseconds(camera.keep);
    keeps.push_back({id, before});
    if (before > 0) expiries.push_back({id, static_cast<std::uint32_t>(hour_at(before))});
  }
  host_.age(wall_now, keeps);
  return store_ == nullptr ? std::vector<history::Expiry>() : expiries;
}

std::size_t Memory::erase(const history::CameraId& camera, const history::WallRange& wall) {
  Camera& entry = find_camera(camera);
  entry.erased.push_back(wall);
  std::size_t pages = host_.erase(camera, wall);
  if (store_ == nullptr) return pages;
  pages += queue_->erase(camera, wall) + store_->pages(camera, wall).size();
  store_->erase(camera, wall);
  return pages;
}

std::vector<Memory::Found> Memory::find(const history::CameraId& camera, const history::WallRange& wall) {
  std::map<std::uint64_t, Found> found;
  for (const HostTier::Page* page : host_.pages(camera, wall)) {
    Found& entry = found[page->info.number];
    entry.info = page->info;
    entry.change = page->change;
    for (const auto& [form, tokens] : page->forms) entry.host.emplace(form, tokens.shared());
    host_.hit(camera, page->info.number);
  }
  if (store_ != nullptr) {
    const auto known = cameras_.find(camera);
    for (const history::KeptPage& page : store_->pages(camera, wall)) {
      // The disk may not have taken it.
      if (known != cameras_.end() && meets_any(history::wall_of(page.info), known->second.erased)) continue;
      if (page.info.fingerprint != options_.fingerprint || is_damaged(page)) continue;
      Found& entry = found[page.info.number / 4];
      if (entry.info.patches.empty()) {
        entry.info = page.info;
        entry.info.number = page.info.number / 4;
      }
      entry.disk.emplace(static_cast<kv::Form>(page.info.form), page.info.number);
    }
  }
  std::vector<Found> pages;
  pages.reserve(found.size());
  for (auto& [number, each] : found) pages.push_back(std::move(each));
  return pages;
}

Coverage Memory::coverage(const history::CameraId& camera, const history::WallRange& wall,
                          std::span<const std::uint64_t> damaged) const {
  std::vector<history::WallRange> there;
  std::vector<KnownGap> known;
  const auto entry = cameras_.find(camera);
  const auto is_known_damaged = [&](std::uint64_t number) {
    return std::find(damaged.begin(), damaged.end(), number) != damaged.end();
  };
  // So that what lies just outside can say whether the camera went on.
  const history::WallRange wider{wall.from - kJitter, wall.to + kJitter};
  for (const HostTier::Page* page : host_.pages(camera, wider))
    if (!is_known_damaged(page->info.number)) there.push_back(history::wall_of(page->info));
  if (store_ != nullptr) {
    std::int64_t first = wall.to + 1;
    std::uint64_t number = store_->last_page(camera) / 4 + 1;
    for (const history::KeptPage& page : store_->pages(camera, wider)) {
      const history::WallRange range = history::wall_of(page.info);
      if (range.from < first) {
        first = range.from;
        number = page.info.number / 4;
      }
      if (entry != cameras_.end() && meets_any(range, entry->second.erased)) continue;
      if (page.info.fingerprint != options_.fingerprint) {
        known.push_back({range, Gap::other_model});
      } else if (is_damaged(page) || is_known_damaged(page.info.number / 4)) {
        known.push_back({range, Gap::damaged});
      } else {
        there.push_back(range);
      }
    }
    for (const history::Erasure& erasure : store_->erasures())
      if (erasure.camera == camera) known.push_back({erasure.wall, Gap::erased});
    // There was something before what is there, and it is gone.
    if (number > 1 && first > wall.from && store_->pages(camera, {0, wall.from - 1}).empty())
      known.push_back({{wall.from, first - 1}, Gap::evicted});
  }
  if (entry != cameras_.end()) {
    known.insert(known.end(), entry->second.gaps.begin(), entry->second.gaps.end());
    for (const history::WallRange& range : entry->second.erased) known.push_back({range, Gap::erased});
  }
  return cover(wall, there, known, kJitter);
}

}  // namespace vigil::memory
