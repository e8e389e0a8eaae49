// Whether the patches of a camera can go on to its device, and what of its credit is left when they cannot.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/messages/watch_book.h"
#include "actors/router/second_gate.h"

namespace vigil::actors {

/// Keeps the books of each camera's credit, so that a camera goes on, with the credit that it has, when its
/// device fails and comes back, or when it moves to another. Not thread-safe.
class PatchGate {
 public:
  /// What the camera's device is to be told of it.
  struct Told {
    std::string camera;
    /// To join with; null if it does not.
    WatchPtr watch;
    std::uint32_t generation = 0;
    bool joins = false;
    /// Afterwards.
    bool ends = false;
    /// What was on its way to the device before and was not encoded, and how many frames that were.
    std::vector<PatchAck> lost = {};
    std::uint64_t lost_frames = 0;
  };

  /// A camera, or its next incarnation, starts. Nothing while its gate is shut: then it joins later.
  std::optional<Told> join(const WatchPtr& watch, std::uint32_t generation);

  /// A camera's settings are these from now on. Whether the device is to be told so.
  bool know(const WatchPtr& watch);

  /// Spends a credit of the camera. False while its gate is shut: then the patch goes nowhere.
  bool pass(const FramePatch& patch);

  /// The device has room for so many patches of a camera that has just joined; returns how many credits the
  /// camera gets, which has a part of them already.
  std::uint32_t grant(const std::string& camera, std::uint32_t room);

  /// What the device did with a patch. Whether the camera is to hear it: not of one that its last incarnation
  /// had sent, or that counts as lost.
  bool acknowledge(const PatchAck& ack);

  /// No patch follows. Nothing while the gate is shut: then the device is told later. Of a camera that never
  /// joined, its settings have to be known.
  std::optional<Told> end(const std::string& camera);

  /// The camera's device can be reached from now on, and knows nothing of it yet.
  std::optional<Told> open(const std::string& camera);
  void shut(const std::string& camera);

  /// The camera goes on at the device of its second gate, which has most of what was on its way to the one
  /// before. What the camera is to hear instead of that one's acknowledgements, and its further credit.
  struct Passed {
    std::vector<PatchAck> acks;
    std::uint32_t more = 0;
  };
  Passed pass_over(const std::string& camera, const SecondGate& second);

  /// What a second device is to be told of the camera, to join; nothing while it has not begun, or has ended.
  std::optional<Told> joined(const std::string& camera) const;

  void forget(const std::string& camera) {
    gates_.erase(camera);
    book_.forget(camera);
  }

 private:
  struct Gate {
    bool open = false;
    /// From when the camera joins, or its end is to be told, until that was told.
    bool known = false;
    std::uint32_t generation = 0;
    /// The end is to be told, or was told to this device.
    bool ended = false;
    std::uint32_t credits = 0;
    /// What was not acknowledged yet, by sequence: how many frames it has.
    std::map<std::uint64_t, std::uint32_t> under_way;
  };

  Told tell(const std::string& camera, Gate& gate);

  std::map<std::string, Gate> gates_;
  WatchBook book_;
};

}  // namespace vigil::actors
