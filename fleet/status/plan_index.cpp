#include "fleet/status/plan_index.h"

#include <algorithm>
#include <utility>

namespace vigil::fleet {

PlanIndex::PlanIndex(std::shared_ptr<const cluster::FleetPlan> plan) : plan_(std::move(plan)) {
  for (const auto& [node, own] : *plan_)
    for (const auto& [camera, entry] : own.cameras) cameras_.push_back({camera, node, &entry, {}});
  // Of each camera, its owner first.
  std::ranges::sort(cameras_, [](const PlannedPlace& a, const PlannedPlace& b) {
    return std::pair(a.camera, b.entry->fence) < std::pair(b.camera, a.entry->fence);
  });
  std::size_t kept = 0;
  for (const PlannedPlace& place : cameras_) {
    if (kept > 0 && cameras_[kept - 1].camera == place.camera) {
      if (cameras_[kept - 1].former.empty()) cameras_[kept - 1].former = place.owner;
      continue;
    }
    cameras_[kept++] = place;
  }
  cameras_.resize(kept);
  for (const PlannedPlace& place : cameras_) {
    ++loads_[std::string(place.owner)].cameras;
    if (!place.former.empty()) ++handing_over_;
    if (place.entry->stream.empty()) {
      ++without_stream_;
    } else {
      ++loads_[place.entry->stream].streams;
    }
    ++rungs_[place.entry->rung.empty() ? std::string(cluster::kFull) : place.entry->rung];
  }
}

const PlannedPlace* PlanIndex::find(std::string_view camera) const {
  const auto place = std::ranges::lower_bound(cameras_, camera, {}, &PlannedPlace::camera);
  return place == cameras_.end() || place->camera != camera ? nullptr : &*place;
}

}  // namespace vigil::fleet
