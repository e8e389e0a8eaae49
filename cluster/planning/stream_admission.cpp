#include "cluster/planning/stream_admission.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "cluster/placement/admission.h"

namespace vigil::cluster {
namespace {

const std::vector<StreamRung>& less_of(const WantedCamera& camera) {
  static const std::vector<StreamRung> none;
  return camera.less ? *camera.less : none;
}

std::vector<AdmissionRung> ladder_of(const WantedCamera& camera) {
  std::vector<AdmissionRung> ladder{{std::string(kFull), camera.stream_load}};
  for (const StreamRung& rung : less_of(camera)) ladder.push_back({rung.name, rung.stream_load});
  return ladder;
}

AdmissionBefore before_of(const WantedCamera& camera, const std::string& rung) {
  using State = AdmissionBefore::State;
  if (rung == kRefused) return {State::refused};
  const std::vector<StreamRung>& less = less_of(camera);
  const auto found = std::ranges::find(less, rung, &StreamRung::name);
  // Of another configuration, say.
  if (found == less.end()) return {};
  return {State::admitted, static_cast<std::size_t>(found - less.begin()) + 1};
}

}  // namespace

StreamAdmission::StreamAdmission(const std::vector<WantedCamera>& cameras, double margin)
    : cameras_(cameras), margin_(margin) {
  loads_.reserve(cameras.size());
  for (const WantedCamera& camera : cameras) loads_.push_back({camera.stream_load, camera.vision_load});
}

void StreamAdmission::admit(const std::vector<PlannedCamera*>& entries, double capacity,
                            base::Clock::WallTime now) {
  if (!std::exchange(was_called_, true))
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (entries[i] != nullptr && !entries[i]->rung.empty())
        before_[i] = {entries[i]->rung, entries[i]->why_rung};
  refusals_.clear();
  degraded_ = 0;
  Admission admitted;
  std::map<std::string_view, const Admitted*> less;
  // Most fleets have room for all, and a city has many cameras.
  if (!std::isinf(capacity)) {
    const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
    std::vector<AdmissionItem> items;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i] == nullptr) continue;
      const auto before = before_.find(i);
      const std::int64_t added = entries[i]->origin_ms > 0 ? entries[i]->origin_ms : now_ms;
      items.push_back({.name = cameras_[i].name,
                       .priority = cameras_[i].priority,
                       .added = static_cast<std::uint64_t>(added),
                       .ladder = ladder_of(cameras_[i]),
                       .before = before_of(cameras_[i], before == before_.end() ? "" : before->second.rung)});
    }
    admitted = cluster::admit(items, capacity, {.margin = margin_});
    for (const Admitted& item : admitted.items)
      if (item.cause != AdmissionCause::full) less.emplace(item.item, &item);
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i] == nullptr) continue;
    PlannedCamera& entry = *entries[i];
    const WantedCamera& camera = cameras_[i];
    const auto item = less.find(camera.name);
    loads_[i] = {camera.stream_load, camera.vision_load};
    if (item == less.end()) {
      entry.rung.clear();
      entry.why_rung.clear();
      continue;
    }
    const Admitted& result = *item->second;
    entry.why_rung = why(result, admitted);
    if (!result.rung) {
      entry.rung = kRefused;
      loads_[i] = {0, 0};
      refusals_[camera.name] = entry.why_rung;
    } else {
      const StreamRung& rung = less_of(camera)[*result.rung - 1];
      entry.rung = rung.name;
      loads_[i] = {rung.stream_load, rung.vision_load};
      ++degraded_;
    }
    // Or every plan would be written anew with each node that comes.
    if (const auto before = before_.find(i); before != before_.end() && before->second.rung == entry.rung)
      entry.why_rung = before->second.why;
  }
}

}  // namespace vigil::cluster
