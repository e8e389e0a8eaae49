#include "actors/router/second_gate.h"

#include <algorithm>

namespace vigil::actors {

void SecondGate::join(std::uint32_t generation) {
  *this = SecondGate();
  joined_ = true;
  generation_ = generation;
}

void SecondGate::grant(std::uint32_t room) {
  // After a device began anew it is told what is missing of that.
  room_ = std::max(room_, room);
}

bool SecondGate::pass(const FramePatch& patch) {
  if (!joined_ || patch.generation != generation_ || under_way_.size() >= room_) return false;
  return under_way_.insert(patch.sequence).second;
}

std::optional<PatchAck> SecondGate::acknowledge(const PatchAck& ack) {
  if (ack.generation != generation_ || under_way_.erase(ack.sequence) == 0) return std::nullopt;
  if (ack.outcome == PatchOutcome::encoded) advice_ = ack.advice;
  if (ack.outcome != PatchOutcome::unknown) return std::nullopt;
  PatchAck heard = ack;
  // Of the device that answers, the credit comes back by itself.
  heard.outcome = PatchOutcome::lost;
  return heard;
}

}  // namespace vigil::actors
