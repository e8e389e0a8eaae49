#include "engine/memory/disk_budget.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/memory/hours.h"

namespace vigil::memory {

void DiskBudget::saw(const history::CameraId& camera, std::uint32_t hour, double change, bool is_alerted) {
  if (bytes_ == 0) return;
  Camera& of = cameras_[camera];
  of.written = hour;
  Hour& entry = of.hours[hour];
  entry.change += change;
  ++entry.pages;
  entry.uses.is_alerted |= is_alerted;
  entry.used = ++uses_;
}

void DiskBudget::asked(const history::CameraId& camera, const std::set<std::uint32_t>& hours) {
  if (bytes_ == 0 || hours.empty()) return;
  ++uses_;
  for (const std::uint32_t each : hours) {
    Hour& entry = cameras_[camera].hours[each];
    ++entry.uses.hits;
    entry.used = uses_;
  }
}

const DiskBudget::Hour* DiskBudget::find(const history::CameraId& camera, std::uint32_t hour) const {
  const auto of_camera = cameras_.find(camera);
  if (of_camera == cameras_.end()) return nullptr;
  const auto entry = of_camera->second.hours.find(hour);
  return entry == of_camera->second.hours.end() ? nullptr : &entry->second;
}

double DiskBudget::worth_of(const history::HourSummary& hour, std::int64_t newest) const {
  TierPool::Page page;
  page.to = wall_time(hour.wall.to);
  TierPool::Uses uses;
  if (const Hour* const known = find(hour.camera, hour.hour)) {
    page.change = known->pages == 0 ? 0 : known->change / static_cast<double>(known->pages);
    uses = known->uses;
  }
  return TierPool::worth_of(page, uses, wall_time(newest));
}

DiskBudget::Order DiskBudget::order_of(std::span<const history::HourSummary> of_camera,
                                       std::uint32_t written) const {
  std::int64_t newest = std::numeric_limits<std::int64_t>::min();
  struct Sum {
    double bytes = 0, pages = 0;
  };
  std::map<std::uint8_t, Sum> sums;
  for (const history::HourSummary& each : of_camera) {
    newest = std::max(newest, each.wall.to);
    sums[each.form].bytes += static_cast<double>(each.bytes);
    sums[each.form].pages += static_cast<double>(each.pages);
  }
  std::vector<std::pair<double, const history::HourSummary*>> ranks;
  for (const history::HourSummary& each : of_camera) {
    if (each.hour >= written || going_.contains(place_of(each))) continue;
    const Sum& sum = sums.at(each.form);
    double rank = worth_of(each, newest) * sum.pages / sum.bytes;
    if (eviction_ == Eviction::lru) {
      const Hour* const known = find(each.camera, each.hour);
      rank = known == nullptr ? 0 : static_cast<double>(known->used);
    }
    ranks.emplace_back(rank, &each);
  }
  // Of equal ones, the oldest and finest first: they are in that order.
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Order order;
  order.reserve(ranks.size());
  for (auto rank = ranks.rbegin(); rank != ranks.rend(); ++rank) order.push_back(rank->second);
  return order;
}

void DiskBudget::forget(std::span<const history::HourSummary> there, std::uint32_t now) {
  std::set<std::pair<history::CameraId, std::uint32_t>> hours;
  std::set<Place> places;
  for (const history::HourSummary& each : there) {
    hours.emplace(each.camera, each.hour);
    places.insert(place_of(each));
  }
  std::erase_if(going_, [&](const Place& each) { return !places.contains(each); });
  for (auto& [camera, known] : cameras_) {
    // What is written last may still be on its way to the disk.
    const std::uint32_t written = std::min(now, known.written.value_or(now));
    std::erase_if(known.hours, [&, &id = camera](const auto& each) {
      return each.first < written && !hours.contains({id, each.first});
    });
  }
  std::erase_if(cameras_, [](const auto& each) { return each.second.hours.empty(); });
}

std::vector<DiskBudget::Over> DiskBudget::over(std::span<const history::HourSummary> there,
                                               std::span<const history::CameraId> sharing,
                                               std::uint32_t now) {
  std::vector<Over> over;
  if (bytes_ == 0) return over;
  forget(there, now);
  struct Giver {
    std::span<const history::HourSummary> hours;
    std::uint64_t share = 0, left = 0;
    std::uint32_t written = 0;
    /// Made when it is asked for first.
    std::optional<Order> order;
  };
  std::vector<Giver> cameras;
  std::uint64_t used = 0;
  for (std::size_t i = 0; i < there.size(); ++i) {
    const history::HourSummary& hour = there[i];
    if (i == 0 || hour.camera != there[i - 1].camera) {
      Giver& camera = cameras.emplace_back();
      camera.written = now;
      if (std::find(sharing.begin(), sharing.end(), hour.camera) != sharing.end()) {
        camera.share = bytes_ / sharing.size();
        const auto known = cameras_.find(hour.camera);
        if (known != cameras_.end()) camera.written = std::min(now, known->second.written.value_or(now));
      }
      camera.hours = there.subspan(i, 0);
    }
    Giver& camera = cameras.back();
    camera.hours = {camera.hours.data(), camera.hours.size() + 1};
    if (going_.contains(place_of(hour))) {
      over.push_back({hour, false});
    } else {
      camera.left += hour.bytes;
      used += hour.bytes;
    }
  }
  while (used > bytes_) {
    Giver* from = nullptr;
    for (Giver& each : cameras) {
      if (each.left <= each.share || (each.order && each.order->empty())) continue;
      if (from != nullptr && each.left - each.share <= from->left - from->share) continue;
      if (!each.order) each.order = order_of(each.hours, each.written);
      if (!each.order->empty()) from = &each;
    }
    if (from == nullptr) break;
    const history::HourSummary& hour = *from->order->back();
    from->order->pop_back();
    from->left -= hour.bytes;
    used -= hour.bytes;
    going_.insert(place_of(hour));
    over.push_back({hour, true});
  }
  return over;
}

}  // namespace vigil::memory
