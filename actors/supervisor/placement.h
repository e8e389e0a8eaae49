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
  /// All devices are up.
  explicit Placement(const std::vector<std::string>& devices);

  /// The device of a camera that starts: the one that it has, or the one with the fewest cameras of those
  /// that are up, else of those that may come back. Nothing if all are lost.
  std::optional<std::string> place(const std::string& camera);
  void remove(const std::string& camera) { cameras_.erase(camera); }

  void enter(const std::string& device, DeviceState state) { devices_.at(device) = state; }
  DeviceState state(const std::string& device) const { return devices_.at(device); }

  /// Whether any device is not lost.
  bool any_left() const;

  /// The cameras of a device.
  std::vector<std::string> cameras(const std::string& device) const;

  /// A device that nothing computes on any more: its cameras, and where each of them is now; nothing if no
  /// device is left.
  struct Move {
    std::string camera;
    std::optional<std::string> device;
  };
  std::vector<Move> lose(const std::string& device);

 private:
  std::map<std::string, DeviceState> devices_;
  /// The device of each camera.
  std::map<std::string, std::string> cameras_;
};

}  // namespace vigil::actors
