// Whether the patches of a camera can go on to its device, and what of its credit is left when they cannot.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>

#include "actors/messages/data.h"

namespace vigil::actors {

/// Keeps the books of each camera's credit, so that a camera goes on, with the credit that it has, when its
/// device fails and comes back, or when it moves to another. Not thread-safe.
class PatchGate {
 public:
  /// What the camera's device is to be told of it.
  struct Told {
    CameraPtr camera;
    std::uint32_t generation = 0;
    bool joins = false;
    /// Afterwards.
    bool ends = false;
    /// Frames that were on their way to the device before and were not encoded.
    std::uint64_t lost_frames = 0;
  };

  /// A camera, or its next incarnation, starts. Nothing while its gate is shut: then it joins later.
  std::optional<Told> join(const CameraPtr& camera, std::uint32_t generation);

  /// Spends a credit of the camera. False while its gate is shut: then the patch goes nowhere.
  bool pass(const FramePatch& patch);

  /// So many credits came from the device; returns how many the camera gets. What a device grants first is
  /// what it has room for, of which the camera has a part already.
  std::uint32_t grant(const std::string& camera, std::uint32_t credits);

  /// No patch follows. Nothing while the gate is shut: then the device is told later.
  std::optional<Told> end(const CameraPtr& camera);

  /// The camera's device can be reached from now on, and knows nothing of it yet.
  std::optional<Told> open(const std::string& camera);
  void shut(const std::string& camera);

  void forget(const std::string& camera) { gates_.erase(camera); }

 private:
  struct Gate {
    bool open = false;
    /// Null before the camera joins and after its end was told.
    CameraPtr camera;
    std::uint32_t generation = 0;
    /// The end is to be told, or was told to this device.
    bool ended = false;
    /// The device has told its credit since it knows the camera.
    bool granted = false;
    std::uint32_t credits = 0;
    /// Frames of each patch for which no credit came back.
    std::deque<std::uint32_t> under_way;
  };

  Told tell(Gate& gate);

  std::map<std::string, Gate> gates_;
};

}  // namespace vigil::actors
