// The second way of a camera's patches, to a device where its windows fill while another one answers.
#pragma once

#include <cstdint>
#include <optional>
#include <set>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"

namespace vigil::actors {

/// Has credits of its own, and lets a patch go by that it has none for: the camera waits for the device that
/// answers, and windows fill a little later. Not thread-safe.
class SecondGate {
 public:
  /// The camera joins there, in this incarnation.
  void join(std::uint32_t generation);
  bool has_joined() const { return joined_; }
  /// No patch follows, unless it joins again.
  void end() { joined_ = false; }

  /// The device has room for so many patches of the camera that has just joined.
  void grant(std::uint32_t room);
  /// Spends a credit. Whether the patch goes there.
  bool pass(const FramePatch& patch);
  /// What the device did with a patch. What the camera is to hear of it, which earns it no credit: that
  /// whole pictures are needed.
  std::optional<PatchAck> acknowledge(const PatchAck& ack);

  /// Patches of which nothing was heard yet, by sequence.
  const std::set<std::uint64_t>& under_way() const { return under_way_; }
  /// As last granted.
  std::uint32_t room() const { return room_; }
  const Advice& advice() const { return advice_; }

 private:
  bool joined_ = false;
  std::uint32_t generation_ = 0;
  std::uint32_t room_ = 0;
  std::set<std::uint64_t> under_way_;
  Advice advice_;
};

}  // namespace vigil::actors
