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

std::int64_t nanoseconds(base::Duration duration) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(duration).count();
}

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

std::vector<history::Expiry> Memory::too_old(std::span<const history::HourSummary> there,
                                             std::int64_t wall_now) {
  std::vector<history::Expiry> expiries;
  for (auto& [id, camera] : cameras_) {
    if (camera.keep <= base::Duration::zero()) continue;
    const history::Expiry expiry{id, hour_of(wall_now - nanoseconds(camera.keep))};
    const auto is_before = [&](std::int64_t moment) { return hour_at(moment) < expiry.before_hour; };
    const std::size_t gaps =
        std::erase_if(camera.gaps, [&](const KnownGap& each) { return is_before(each.wall.to); });
    if (gaps > 0 ||
        std::any_of(there.begin(), there.end(), [&](const auto& each) { return is_over(each, expiry); }))
      expiries.push_back(expiry);
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
  const std::vector<DiskBudget::Over> over = budget_.over(there, watched(), hour_of(wall_now));
  std::map<history::HourKey, history::WallRange> gone;
  for (const auto& [hour, is_new] : over) {
    aged.expiries.push_back({hour.camera, hour.hour + 1, hour.form, hour.hour});
    history::WallRange& wall = gone.try_emplace({hour.camera, hour.hour}, hour.wall).first->second;
    wall = {std::min(wall.from, hour.wall.from), std::max(wall.to, hour.wall.to)};
  }
  // An hour is missing once its last form goes.
  const auto goes = [&](const history::HourSummary& hour) {
    return std::any_of(over.begin(), over.end(), [&](const auto& each) { return each.hour == hour; });
  };
  for (const history::HourSummary& each : there)
    if (gone.contains({each.camera, each.hour}) && !goes(each)) gone.erase({each.camera, each.hour});
  for (const auto& [hour, is_new] : over)
    if (const auto wall = gone.find({hour.camera, hour.hour}); is_new && wall != gone.end())
      note(find_camera(hour.camera), wall->second, Gap::evicted);
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
  std::vector<HostTier::Aged> keeps;
  for (const auto& [id, camera] : cameras_)
    if (camera.keep > base::Duration::zero()) keeps.push_back({id, wall_now - nanoseconds(camera.keep)});
  host_.age(wall_now, keeps);
  Aged aged;
  std::vector<history::HourSummary> there;
  if (store_ != nullptr) there = store_->hours(std::nullopt);
  aged.expiries = too_old(there, wall_now);
  if (store_ == nullptr) aged.expiries.clear();
  forget_erasures(wall_now, aged);
  make_room(std::move(there), wall_now, aged);
  for (auto& [id, camera] : cameras_)
    for (const KnownGap& each : std::exchange(camera.unwritten, {}))
      if (store_ != nullptr) aged.notes.push_back({id, each.wall, static_cast<std::uint8_t>(each.why)});
  return aged;
}

}  // namespace vigil::memory
