// What goes with time: pages that are too old or too many, and erasures that no page can meet any more.
#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "engine/memory/hours.h"
#include "engine/memory/memory.h"

namespace vigil::memory {
namespace {

std::uint32_t hour_of(std::int64_t moment) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(hour_at(moment), 0, std::numeric_limits<std::uint32_t>::max()));
}

/// How long a form is kept on the disk; nothing: as long as its camera keeps it. What was packed coarser
/// because the disk was late is kept as long as what it stands for.
std::optional<base::Duration> age_of(kv::Form form, const HostTier::Ages& ages) {
  const auto known = ages.find(form);
  if (known != ages.end()) return known->second;
  std::optional<base::Duration> age;
  if (form == kv::Form::embeddings || form == kv::Form::sketch) return age;
  for (const auto& [each, keep] : ages)
    if (each < form) age = std::max(age.value_or(keep), keep);
  return age;
}

bool is_over(const history::HourSummary& hour, const history::Expiry& expiry) {
  return hour.camera == expiry.camera && expiry.covers(hour.hour, hour.form);
}

}  // namespace

/// Of all that is over, its reasons too, one remains: from the first of it to the last it is evicted. So what
/// was before is not.
std::optional<history::Expiry> Memory::too_old(const history::CameraId& id, Camera& camera, std::int64_t from,
                                               std::span<const history::HourSummary> there) const {
  history::Expiry expiry{id, hour_of(from)};
  std::optional<history::WallRange> gone;
  for (const history::HourSummary& each : there)
    if (is_over(each, expiry)) widen(gone, each.wall);
  // Without a disk, pages go one by one.
  if (store_ == nullptr)
    for (const HostTier::Page* page : host_.pages(id, {std::numeric_limits<std::int64_t>::min(), from}))
      if (history::wall_of(page->info).to < from) widen(gone, history::wall_of(page->info));
  const auto is_before = [&](const KnownGap& each) { return hour_at(each.wall.to) < expiry.before_hour; };
  const auto before = std::ranges::count_if(camera.gaps, is_before);
  const bool is_told = before == 0 || (before == 1 && std::ranges::any_of(camera.gaps, [&](const auto& each) {
                                         return is_before(each) && each.why == Gap::evicted;
                                       }));
  if (!gone && is_told) return std::nullopt;
  std::erase_if(camera.gaps, [&](const KnownGap& each) {
    if (!is_before(each)) return false;
    widen(gone, each.wall);
    return true;
  });
  camera.gaps.insert(camera.gaps.begin(), {*gone, Gap::evicted});
  expiry.note = history::Note{id, *gone, static_cast<std::uint8_t>(Gap::evicted)};
  return expiry;
}

std::vector<history::Expiry> Memory::too_old(std::span<const history::HourSummary> there,
                                             std::int64_t wall_now) {
  std::vector<history::Expiry> expiries;
  for (auto& [id, camera] : cameras_) {
    if (!camera.keep) continue;
    if (auto expiry = too_old(id, camera, kept_from(id, wall_now), there))
      expiries.push_back(std::move(*expiry));
  }
  const history::HourSummary* before = nullptr;
  std::set<std::uint8_t> forms;
  for (const history::HourSummary& each : there) {
    if (before != nullptr && before->camera != each.camera) forms.clear();
    before = &each;
    const auto age = age_of(static_cast<kv::Form>(each.form), options_.disk);
    if (!age) continue;
    const history::Expiry expiry{each.camera, hour_of(wall_now - nanoseconds(*age)), each.form};
    if (is_over(each, expiry) && forms.insert(each.form).second) expiries.push_back(expiry);
  }
  return expiries;
}

void Memory::make_room(std::vector<history::HourSummary> there, std::int64_t wall_now, Aged& aged) {
  std::erase_if(there, [&](const history::HourSummary& hour) {
    return std::any_of(aged.expiries.begin(), aged.expiries.end(),
                       [&](const history::Expiry& each) { return is_over(hour, each); });
  });
  for (const auto& [hour, is_new] : budget_.over(there, watched(), hour_of(wall_now)))
    aged.expiries.push_back({hour.camera, hour.hour + 1, hour.form, hour.hour});
}

/// An hour is missing once its last form goes; what all of a camera's expire by says it by itself.
void Memory::note_gone(std::span<const history::HourSummary> there, const Aged& aged) {
  for (auto hour = there.begin(); hour != there.end();) {
    const auto next = std::find_if(hour, there.end(), [&](const history::HourSummary& each) {
      return each.camera != hour->camera || each.hour != hour->hour;
    });
    std::optional<history::WallRange> wall;
    bool goes = true;
    for (auto form = hour; form != next; ++form) {
      goes = goes && std::ranges::any_of(
                         aged.expiries, [&](const auto& each) { return !each.note && is_over(*form, each); });
      widen(wall, form->wall);
    }
    Camera* const camera = goes ? &find_camera(hour->camera) : nullptr;
    const auto is_told = [&](const KnownGap& gap) {
      return gap.why == Gap::evicted && gap.wall.from <= wall->from && wall->to <= gap.wall.to;
    };
    if (camera != nullptr && std::ranges::none_of(camera->gaps, is_told)) note(*camera, *wall, Gap::evicted);
    hour = next;
  }
}

void Memory::forget_erasures(std::int64_t wall_now, Aged& aged) {
  const std::int64_t late = nanoseconds(options_.latest);
  // Whether a page may still come that meets what was erased, and was over, at this time.
  const auto may_come = [&](std::int64_t over, const history::WallRange& wall) {
    return wall_now - late < over || wall.to > wall_now - late;
  };
  std::set<std::uint64_t> there;
  if (store_ != nullptr) {
    for (const history::Erasure& each : store_->erasures()) {
      there.insert(each.id);
      find_camera(each.camera);
      if (!each.finished) continue;
      const std::int64_t since = finished_.try_emplace(each.id, wall_now).first->second;
      if (!may_come(since, each.wall)) aged.forgotten.push_back(each.id);
    }
    std::erase_if(finished_, [&](const auto& each) { return !there.contains(each.first); });
  }
  for (auto& known : cameras_) {
    Camera& camera = known.second;
    std::erase_if(camera.erased, [&](const Erased& each) {
      // What the disk refused holds as long as this process.
      const bool is_known =
          store_ == nullptr ? may_come(each.given, each.wall) : !each.id || there.contains(*each.id);
      if (!is_known) add_gap(camera.gaps, {each.wall, Gap::erased});
      return !is_known;
    });
  }
}

Memory::Aged Memory::age(std::int64_t wall_now) {
  Aged aged;
  std::vector<history::HourSummary> there;
  if (store_ != nullptr) there = store_->hours(std::nullopt);
  aged.expiries = too_old(there, wall_now);
  if (store_ == nullptr) aged.expiries.clear();
  std::vector<HostTier::Aged> keeps;
  for (const auto& [id, camera] : cameras_)
    if (camera.keep) keeps.push_back({id, kept_from(id, wall_now)});
  host_.age(wall_now, keeps);
  forget_erasures(wall_now, aged);
  make_room(there, wall_now, aged);
  note_gone(there, aged);
  for (auto& [id, camera] : cameras_)
    for (const KnownGap& each : std::exchange(camera.unwritten, {}))
      if (store_ != nullptr) aged.notes.push_back({id, each.wall, static_cast<std::uint8_t>(each.why)});
  return aged;
}

}  // namespace vigil::memory
