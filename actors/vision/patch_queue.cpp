#include "actors/vision/patch_queue.h"

#include <algorithm>
#include <utility>

namespace vigil::actors {

double load_of(const FramePatch& patch) {
  constexpr double kLeast = 1.0 / 8;
  if (!patch.encoded || patch.encoded->cells() == 0) return 1;
  return std::max(kLeast,
                  static_cast<double>(patch.encoded->count()) / static_cast<double>(patch.encoded->cells()));
}

double load_of(const std::vector<FramePatchPtr>& patches) {
  double load = 0;
  for (const FramePatchPtr& patch : patches) load += load_of(*patch);
  return load;
}

PatchQueue::Joined PatchQueue::join(const WatchSettings& watch) {
  const auto [entry, is_new] = lanes_.try_emplace(watch.name);
  Lane& lane = entry->second;
  lane.ended = false;
  const int stride = patches_in(watch, watch.window.stride, frames_per_patch_);
  const auto credits = static_cast<std::uint32_t>(2 * stride);
  // What the last incarnation had under way may still arrive beside the new one's.
  lane.capacity = 2 * static_cast<std::size_t>(credits);
  return {credits, is_new};
}

void PatchQueue::grant(const std::string& camera, std::uint32_t credits) {
  const auto lane = lanes_.find(camera);
  if (lane != lanes_.end()) lane->second.downstream += credits;
}

bool PatchQueue::push(FramePatchPtr patch) {
  const auto lane = lanes_.find(patch->watch.camera);
  if (lane == lanes_.end() || lane->second.patches.size() >= lane->second.capacity) return false;
  lane->second.patches.push_back(std::move(patch));
  ++size_;
  return true;
}

void PatchQueue::end(const std::string& camera) {
  const auto lane = lanes_.find(camera);
  if (lane != lanes_.end()) lane->second.ended = true;
}

std::vector<FramePatchPtr> PatchQueue::pop(std::size_t max) {
  std::vector<FramePatchPtr> batch;
  double left = static_cast<double>(max);
  // Rounds over the cameras, starting behind the one that was served last, until a whole round serves none.
  for (bool served = true; served;) {
    served = false;
    auto lane = lanes_.upper_bound(last_);
    for (std::size_t i = 0; i < lanes_.size(); ++i, ++lane) {
      if (lane == lanes_.end()) lane = lanes_.begin();
      Lane& each = lane->second;
      if (each.patches.empty() || each.downstream == 0) continue;
      left -= load_of(*each.patches.front());
      // It is the first one of the next batch.
      if (left < 0) return batch;
      batch.push_back(std::move(each.patches.front()));
      each.patches.pop_front();
      ++each.under_way;
      --each.downstream;
      --size_;
      last_ = lane->first;
      served = true;
    }
  }
  return batch;
}

double PatchQueue::ready() const {
  double load = 0;
  for (const auto& [camera, lane] : lanes_)
    for (std::size_t i = 0; i < std::min<std::size_t>(lane.patches.size(), lane.downstream); ++i)
      load += load_of(*lane.patches[i]);
  return load;
}

void PatchQueue::done(const FramePatch& patch) {
  --lanes_.at(patch.watch.camera).under_way;
}

std::vector<std::string> PatchQueue::take_ended() {
  std::vector<std::string> ended;
  std::erase_if(lanes_, [&](const auto& lane) {
    const bool over = lane.second.ended && lane.second.patches.empty() && lane.second.under_way == 0;
    if (over) ended.push_back(lane.first);
    return over;
  });
  return ended;
}

std::optional<base::Clock::TimePoint> PatchQueue::oldest() const {
  std::optional<base::Clock::TimePoint> oldest;
  for (const auto& [camera, lane] : lanes_) {
    if (lane.patches.empty() || lane.downstream == 0) continue;
    const auto captured = lane.patches.front()->captured.steady;
    if (!oldest || captured < *oldest) oldest = captured;
  }
  return oldest;
}

}  // namespace vigil::actors
