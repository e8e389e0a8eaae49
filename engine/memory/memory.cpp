#include "engine/memory/memory.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "engine/memory/hours.h"
#include "engine/memory/kept.h"

namespace vigil::memory {
namespace {

constexpr history::WallRange kEver{std::numeric_limits<std::int64_t>::min(),
                                   std::numeric_limits<std::int64_t>::max()};

/// What one of its forms says of a page.
void place(Memory::Found& found, kv::Form form, history::PageInfo info) {
  if (form == kv::Form::sketch) {
    found.sketch = std::move(info);
  } else if (found.info.patches.empty()) {
    found.info = std::move(info);
  }
}

}  // namespace

Memory::Memory(history::HistoryStore* store, Options options)
    : store_(store),
      options_(std::move(options)),
      host_(options_.host_bytes, options_.eviction, options_.host),
      budget_(store == nullptr ? 0 : options_.disk_bytes, options_.eviction) {
  if (store_ != nullptr) queue_ = std::make_unique<PartQueue>(*store_, options_.parts);
}

bool Memory::is_erased(const Camera& camera, const history::WallRange& wall) {
  return std::any_of(camera.erased.begin(), camera.erased.end(),
                     [&](const auto& each) { return each.wall.meets(wall); });
}

bool Memory::is_refused(const Camera& camera, const history::WallRange& wall) {
  return std::any_of(camera.erased.begin(), camera.erased.end(),
                     [&](const auto& each) { return !each.id && each.wall.meets(wall); });
}

bool Memory::is_damaged(const history::KeptPage& page) {
  return std::any_of(page.values.begin(), page.values.end(),
                     [](const history::KeptValue& value) { return value.damaged; });
}

Memory::Camera& Memory::find_camera(const history::CameraId& camera) {
  const auto [entry, is_new] = cameras_.try_emplace(camera);
  if (is_new && store_ != nullptr) {
    entry->second.last = page_of(store_->last_page(camera));
    for (const history::Erasure& erasure : store_->erasures())
      if (erasure.camera == camera) entry->second.erased.push_back({erasure.wall, erasure.id, 0});
    entry->second.gaps = noted(camera, kEver);
  }
  return entry->second;
}

std::vector<history::CameraId> Memory::watched() const {
  std::vector<history::CameraId> watched;
  for (const auto& [id, camera] : cameras_)
    if (camera.is_watched) watched.push_back(id);
  return watched;
}

void Memory::share() {
  host_.share(watched());
}

void Memory::set_keep(const history::CameraId& id, Camera& camera, base::Duration keep) {
  camera.keep = keep;
  if (keep > base::Duration::zero()) return;
  // What has not come to the disk does not come there any more; what has, goes as its time is over.
  std::optional<history::WallRange> gone;
  for (const HostTier::Page* page : host_.pages(id, kEver)) widen(gone, history::wall_of(page->info));
  host_.erase(id, kEver);
  if (queue_) {
    for (const PartQueue::OnItsWay& page : queue_->pages(id, kEver)) widen(gone, history::wall_of(page.info));
    queue_->erase(id, kEver);
  }
  if (gone) note(camera, *gone, Gap::evicted);
}

std::int64_t Memory::kept_from(const history::CameraId& camera, std::int64_t wall_now) const {
  const auto known = cameras_.find(camera);
  if (known == cameras_.end() || !known->second.keep) return kEver.from;
  const base::Duration keep = *known->second.keep;
  if (keep <= base::Duration::zero()) return kEver.to;
  return wall_now - nanoseconds(keep);
}

void Memory::watch(const history::CameraId& camera, base::Duration keep, base::Duration comes) {
  Camera& entry = find_camera(camera);
  set_keep(camera, entry, keep);
  entry.comes = comes;
  if (!std::exchange(entry.is_watched, true)) share();
}

void Memory::keep(const history::CameraId& camera, base::Duration keep) {
  Camera& entry = find_camera(camera);
  if (!entry.is_watched) set_keep(camera, entry, keep);
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
    const bool is_small = form == kv::Form::embeddings || form == kv::Form::sketch;
    has_keys = has_keys || !is_small;
    if (pressure == Pressure::none || (is_small && pressure != Pressure::full)) wanted[form] = true;
  }
  if (pressure == Pressure::coarser && has_keys) wanted[kv::Form::int4] = true;
  std::vector<kv::Form> forms;
  forms.reserve(wanted.size());
  for (const auto& [form, is_wanted] : wanted) forms.push_back(form);
  return forms;
}

void Memory::add_gap(std::vector<KnownGap>& gaps, const KnownGap& gap) {
  if (!gaps.empty() && gaps.back().why == gap.why && gap.wall.from - gaps.back().wall.to <= kJitter &&
      gap.wall.to >= gaps.back().wall.from) {
    gaps.back().wall = {std::min(gaps.back().wall.from, gap.wall.from),
                        std::max(gaps.back().wall.to, gap.wall.to)};
    return;
  }
  if (gaps.size() >= history::kMostNotes) gaps.erase(gaps.begin());
  gaps.push_back(gap);
}

void Memory::cut_gaps(std::vector<KnownGap>& gaps, const history::WallRange& wall) {
  std::vector<KnownGap> left;
  for (const KnownGap& each : gaps) {
    if (!each.wall.meets(wall)) {
      left.push_back(each);
      continue;
    }
    if (each.wall.from < wall.from) left.push_back({{each.wall.from, wall.from - 1}, each.why});
    if (each.wall.to > wall.to) left.push_back({{wall.to + 1, each.wall.to}, each.why});
  }
  gaps = std::move(left);
}

void Memory::note(Camera& camera, const history::WallRange& wall, Gap why) const {
  if (wall.to < wall.from) return;
  add_gap(camera.gaps, {wall, why});
  if (store_ == nullptr) return;
  // As the store joins nothing that is apart, it is told of all that has become one here.
  const KnownGap& joined = camera.gaps.back();
  if (!camera.unwritten.empty() && camera.unwritten.back().why == why &&
      camera.unwritten.back().wall.meets(joined.wall)) {
    camera.unwritten.back() = joined;
  } else {
    add_gap(camera.unwritten, joined);
  }
}

void Memory::note_gone_along(Camera& camera, const history::WallRange& wall) const {
  std::vector<KnownGap> beyond{{wall, Gap::erased}};
  for (const Erased& each : camera.erased) cut_gaps(beyond, each.wall);
  for (const KnownGap& each : beyond) note(camera, each.wall, each.why);
}

Memory::Taken Memory::take(FreshPage page, base::Clock::TimePoint now) {
  Camera& camera = find_camera(page.camera);
  Taken taken;
  const history::WallRange wall = history::wall_of(page.info);
  if (is_erased(camera, wall)) {
    taken.lost = Gap::erased;
    note_gone_along(camera, wall);
    return taken;
  }
  // It was on its way when that was said.
  if (camera.keep && *camera.keep <= base::Duration::zero()) {
    taken.lost = Gap::evicted;
    note(camera, wall, Gap::evicted);
    return taken;
  }
  page.info.number = ++camera.last;
  if (wall.from >= 0)
    budget_.saw(page.camera, static_cast<std::uint32_t>(hour_at(wall.from)), page.change, page.is_alerted);
  page.info.fingerprint = options_.fingerprint;
  if (page.sketch) {
    page.sketch->number = page.info.number;
    page.sketch->fingerprint = page.info.fingerprint;
  }
  const Pressure pressure = queue_ ? queue_->pressure() : Pressure::full;
  HostTier::Page kept{page.info, page.change, {}, page.sketch, page.is_alerted};
  bool is_wanted = false;
  for (run::MovedTokens& tokens : page.forms) {
    tokens.arrived.wait();
    is_wanted = is_wanted || (queue_ && options_.disk.contains(tokens.form));
    const bool is_coarser = pressure == Pressure::coarser && tokens.form == kv::Form::int4;
    if (queue_ && (options_.disk.contains(tokens.form) || is_coarser)) {
      history::PageInfo info = tokens.form == kv::Form::sketch ? page.sketch.value() : page.info;
      info.number = number_on_disk(page.info.number, tokens.form);
      if (queue_->offer(page.camera, std::move(info), tokens, now)) taken.written.push_back(tokens.form);
    }
    const kv::Form form = tokens.form;
    kept.forms.emplace(form, std::move(tokens));
  }
  const HostTier::Put put = host_.put(page.camera, std::move(kept));
  taken.is_on_host = put.is_kept;
  taken.is_unwritten = is_wanted && taken.written.empty();
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

std::size_t Memory::erase(const history::CameraId& camera, const history::WallRange& wall,
                          std::int64_t wall_now) {
  const history::WallRange seen = seen_of(wall, wall_now);
  if (seen.to < seen.from) return 0;
  Camera& entry = find_camera(camera);
  // An order that is given again, as after a failure, is the same one.
  auto erased = std::find_if(entry.erased.begin(), entry.erased.end(),
                             [&](const Erased& each) { return each.wall == seen; });
  if (erased == entry.erased.end()) erased = entry.erased.insert(erased, {seen, std::nullopt, wall_now});
  erased->given = wall_now;
  cut_gaps(entry.gaps, seen);
  cut_gaps(entry.unwritten, seen);
  std::set<std::uint64_t> pages;
  std::optional<history::WallRange> gone;
  const auto goes = [&](std::uint64_t number, const history::PageInfo& info) {
    pages.insert(number);
    widen(gone, history::wall_of(info));
  };
  for (const HostTier::Page* page : host_.pages(camera, seen)) goes(page->info.number, page->info);
  host_.erase(camera, seen);
  if (store_ != nullptr) {
    for (const PartQueue::OnItsWay& page : queue_->pages(camera, seen))
      goes(page_of(page.info.number), page.info);
    for (const std::uint64_t number : queue_->erase(camera, seen)) pages.insert(page_of(number));
    for (const history::KeptPage& page : store_->pages(camera, seen))
      goes(page_of(page.info.number), page.info);
  }
  if (gone) note_gone_along(entry, *gone);
  if (store_ == nullptr) return pages.size();
  if (!erased->id || !pages.empty()) erased->id = store_->erase(camera, seen);
  // Those of it that were refused are done with it.
  std::erase_if(entry.erased, [&](const Erased& each) {
    return !each.id && seen.from <= each.wall.from && each.wall.to <= seen.to;
  });
  return pages.size();
}

std::vector<Memory::Found> Memory::find(const history::CameraId& camera, const history::WallRange& wall,
                                        std::int64_t wall_now) {
  const std::int64_t from = kept_from(camera, wall_now);
  const auto is_kept = [&](const history::PageInfo& info) {
    const auto kept = kept_wall(info, from);
    return kept && kept->meets(wall);
  };
  std::map<std::uint64_t, Found> found;
  for (const HostTier::Page* page : host_.pages(camera, wall)) {
    if (!is_kept(page->info)) continue;
    Found& entry = found[page->info.number];
    entry.info = page->info;
    entry.sketch = page->sketch;
    entry.change = page->change;
    for (const auto& [form, tokens] : page->forms) entry.host.emplace(form, tokens.shared());
    host_.hit(camera, page->info.number);
  }
  if (store_ != nullptr) {
    const auto known = cameras_.find(camera);
    // Before the disk: what was written meanwhile is there by then.
    for (PartQueue::OnItsWay& page : queue_->pages(camera, wall)) {
      if (known != cameras_.end() && is_erased(known->second, history::wall_of(page.info))) continue;
      if (!is_kept(page.info)) continue;
      const kv::Form form = page.tokens.form;
      page.info.number = page_of(page.info.number);
      Found& entry = found[page.info.number];
      entry.host.try_emplace(form, std::move(page.tokens));
      place(entry, form, std::move(page.info));
    }
    std::set<std::uint32_t> hours;
    for (const history::KeptPage& page : store_->pages(camera, wall)) {
      // The disk may not have taken it.
      if (known != cameras_.end() && is_erased(known->second, history::wall_of(page.info))) continue;
      if (page.info.fingerprint != options_.fingerprint || is_damaged(page) || !is_kept(page.info)) continue;
      hours.insert(page.hour);
      history::PageInfo info = page.info;
      info.number = page_of(page.info.number);
      Found& entry = found[info.number];
      const auto form = static_cast<kv::Form>(page.info.form);
      OnDisk on_disk{page.info.number, {}};
      for (const history::KeptValue& value : page.values) on_disk.layers.push_back(value.layers);
      entry.disk.emplace(form, std::move(on_disk));
      place(entry, form, std::move(info));
    }
    budget_.asked(camera, hours);
  }
  std::vector<Found> pages;
  pages.reserve(found.size());
  for (auto& [number, each] : found) {
    if (each.info.patches.empty()) each.info = each.sketch.value();
    each.first_kept = first_kept(each.info, from);
    pages.push_back(std::move(each));
  }
  return pages;
}

}  // namespace vigil::memory
