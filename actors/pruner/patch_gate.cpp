#include "actors/pruner/patch_gate.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace vigil::actors {

PatchGate::Told PatchGate::tell(Gate& gate) {
  const std::uint64_t lost = std::accumulate(gate.under_way.begin(), gate.under_way.end(), std::uint64_t{0});
  gate.under_way.clear();
  gate.granted = false;
  Told result{gate.camera, gate.generation, true, gate.ended, lost};
  if (gate.ended) gate.camera = nullptr;
  return result;
}

std::optional<PatchGate::Told> PatchGate::join(const CameraPtr& camera, std::uint32_t generation) {
  Gate& gate = gates_[camera->name];
  gate.camera = camera;
  gate.generation = generation;
  gate.ended = false;
  // What its last incarnation had under way earns it nothing, and is still encoded.
  gate.credits = 0;
  gate.under_way.clear();
  if (!gate.open) return std::nullopt;
  return tell(gate);
}

bool PatchGate::pass(const FramePatch& patch) {
  const auto entry = gates_.find(patch.camera->name);
  if (entry == gates_.end()) return false;
  Gate& gate = entry->second;
  const bool current = patch.generation == gate.generation;
  if (current && gate.credits > 0) --gate.credits;
  if (gate.open && current) gate.under_way.push_back(static_cast<std::uint32_t>(patch.frames.size()));
  return gate.open;
}

std::uint32_t PatchGate::grant(const std::string& camera, std::uint32_t credits) {
  const auto entry = gates_.find(camera);
  if (entry == gates_.end()) return 0;
  Gate& gate = entry->second;
  const auto under_way = static_cast<std::uint32_t>(gate.under_way.size());
  std::uint32_t more = credits;
  if (std::exchange(gate.granted, true)) {
    gate.under_way.erase(gate.under_way.begin(), gate.under_way.begin() + std::min(credits, under_way));
  } else {
    const std::uint32_t has = gate.credits + under_way;
    more = credits > has ? credits - has : 0;
  }
  if (!gate.camera) return 0;
  gate.credits += more;
  return more;
}

std::optional<PatchGate::Told> PatchGate::end(const CameraPtr& camera) {
  Gate& gate = gates_[camera->name];
  const bool known = gate.camera != nullptr;
  if (gate.open && !known && gate.ended) return std::nullopt;  // the device has been told
  gate.camera = camera;
  gate.ended = true;
  if (!gate.open) return std::nullopt;
  if (!known) return tell(gate);
  gate.camera = nullptr;
  return Told{camera, gate.generation, false, true, 0};
}

std::optional<PatchGate::Told> PatchGate::open(const std::string& camera) {
  Gate& gate = gates_[camera];
  gate.open = true;
  if (gate.camera) return tell(gate);
  gate.ended = false;
  return std::nullopt;
}

void PatchGate::shut(const std::string& camera) {
  gates_[camera].open = false;
}

}  // namespace vigil::actors
