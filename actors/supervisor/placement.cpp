#include "actors/supervisor/placement.h"

#include <algorithm>
#include <tuple>

namespace vigil::actors {

Placement::Placement(const std::vector<std::string>& devices) : is_assigned_(devices.empty()) {
  for (const std::string& device : devices) devices_.emplace(device, DeviceState::up);
}

std::optional<std::string> Placement::place(const std::string& camera) {
  if (const auto placed = cameras_.find(camera); placed != cameras_.end()) return placed->second;
  if (is_assigned_) return std::nullopt;
  std::map<std::string, std::size_t> load;
  for (const auto& [name, device] : cameras_) ++load[device];
  const std::string* best = nullptr;
  for (const auto& [device, state] : devices_) {
    if (state == DeviceState::lost) continue;
    if (best == nullptr || std::tuple(state, load[device]) < std::tuple(devices_.at(*best), load[*best]))
      best = &device;
  }
  if (best == nullptr) return std::nullopt;
  cameras_.emplace(camera, *best);
  return *best;
}

bool Placement::any_left() const {
  return std::any_of(devices_.begin(), devices_.end(),
                     [](const auto& device) { return device.second != DeviceState::lost; });
}

std::vector<std::string> Placement::cameras(const std::string& device) const {
  std::vector<std::string> names;
  for (const auto& [name, on] : cameras_)
    if (on == device) names.push_back(name);
  return names;
}

std::vector<Placement::Move> Placement::lose(const std::string& device) {
  enter(device, DeviceState::lost);
  const std::vector<std::string> names = cameras(device);
  if (!is_assigned_)
    for (const std::string& camera : names) cameras_.erase(camera);
  std::vector<Move> moves;
  moves.reserve(names.size());
  for (const std::string& camera : names)
    moves.push_back({camera, is_assigned_ ? std::nullopt : place(camera)});
  return moves;
}

}  // namespace vigil::actors
