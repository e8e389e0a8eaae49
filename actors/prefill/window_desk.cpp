#include "actors/prefill/window_desk.h"

#include <algorithm>
#include <utility>

namespace vigil::actors {

std::uint32_t WindowDesk::join(const WatchPtr& watch) {
  book_.put(watch);
  lanes_.insert_or_assign(watch->name, Lane(watch));
  return static_cast<std::uint32_t>(patches_in(*watch, watch->window.length, frames_per_patch_) +
                                    patches_in(*watch, watch->window.stride, frames_per_patch_));
}

WindowDesk::Taken WindowDesk::push(VisualPatchPtr patch) {
  const auto entry = lanes_.find(patch->watch.camera);
  if (entry == lanes_.end()) return {0, true, 0};
  const WatchPtr watch = book_.refer(patch->watch);
  if (!watch) return {1, true, 0};
  Lane& lane = entry->second;
  auto [verdict, due] = lane.assembler.push(std::move(patch), watch);
  if (verdict == WindowAssembler::Verdict::late) return {1, true, 0};
  Taken taken{1, false, 0};
  if (watch->lossless && !due.empty()) {
    due.back().held_credits = 1;
    taken.credits = 0;
  }
  for (DueWindow& window : due) taken.overtaken += enqueue(lane, std::move(window));
  return taken;
}

void WindowDesk::end(const std::string& camera) {
  const auto entry = lanes_.find(camera);
  if (entry == lanes_.end()) return;
  // The last window does not overtake the one before it: no later one makes up for that.
  if (auto last = entry->second.assembler.flush()) entry->second.windows.push_back(std::move(*last));
  entry->second.ended = true;
}

std::size_t WindowDesk::enqueue(Lane& lane, DueWindow window) {
  std::size_t overtaken = 0;
  if (!window.watch->lossless) overtaken = lane.windows.size();
  if (overtaken > 0) lane.windows.clear();
  lane.windows.push_back(std::move(window));
  return overtaken;
}

WindowDesk::Batch WindowDesk::pop(std::size_t max, const Admit& admit) {
  std::vector<Lane*> waiting;
  for (auto& [name, lane] : lanes_) {
    if (!lane.windows.empty()) waiting.push_back(&lane);
  }
  std::stable_sort(waiting.begin(), waiting.end(),
                   [](const Lane* a, const Lane* b) { return a->served < b->served; });
  if (waiting.size() > max) waiting.resize(max);
  Batch batch;
  for (Lane* lane : waiting) {
    if (admit && !admit(lane->windows.front())) break;
    batch.windows.push_back(std::move(lane->windows.front()));
    lane->windows.pop_front();
    lane->served = ++turn_;
  }
  for (auto lane = lanes_.begin(); lane != lanes_.end();) {
    if (lane->second.ended && lane->second.windows.empty()) {
      batch.ended.push_back(lane->first);
      book_.forget(lane->first);
      lane = lanes_.erase(lane);
    } else {
      ++lane;
    }
  }
  return batch;
}

std::size_t WindowDesk::size() const {
  std::size_t size = 0;
  for (const auto& [name, lane] : lanes_) size += lane.windows.size();
  return size;
}

}  // namespace vigil::actors
