// Which device watches which camera.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"

namespace vigil::actors {

/// A camera stays on its device, also while that is made again, until the device is lost. Not thread-safe.
class Placement {
 public:
  /// These devices are up. Without any, others decide: `assign`.
  explicit Placement(const std::vector<std::string>& devices);

  /// The device of a camera that starts: the one that it has, or the one with the fewest cameras of those
  /// that are up, else of those that may come back. Nothing if all are lost, or others decide.
  std::optional<std::string> place(const std::string& camera);
  /// A camera is on this device from now on, whether that is there yet or not.
  void assign(const std::string& camera, const std::string& device) { cameras_[camera] = device; }
  void remove(const std::string& camera) { cameras_.erase(camera); }
  /// Nothing if it was not placed.
  std::optional<std::string> device(const std::string& camera) const {
    const auto placed = cameras_.find(camera);
    return placed == cameras_.end() ? std::nullopt : std::optional(placed->second);
  }

  void enter(const std::string& device, DeviceState state) { devices_[device] = state; }
  /// Lost if nothing was ever heard of it.
  DeviceState state(const std::string& device) const {
    const auto entry = devices_.find(device);
    return entry == devices_.end() ? DeviceState::lost : entry->second;
  }

  /// Whether others decide which camera is where.
  bool is_assigned() const { return is_assigned_; }
  /// Whether any device is not lost.
  bool any_left() const;

  /// The cameras of a device.
  std::vector<std::string> cameras(const std::string& device) const;

  /// A device that nothing computes on any more: its cameras, and where each of them is now; nothing if no
  /// device is left, or others decide.
  struct Move {
    std::string camera;
    std::optional<std::string> device;
  };
  std::vector<Move> lose(const std::string& device);

 private:
  bool is_assigned_;
  std::map<std::string, DeviceState> devices_;
  /// The device of each camera.
  std::map<std::string, std::string> cameras_;
};

}  // namespace vigil::actors
