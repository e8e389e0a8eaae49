#include "actors/router/patch_gate.h"

namespace vigil::actors {

PatchGate::Told PatchGate::tell(const std::string& camera, Gate& gate) {
  Told told{camera, book_.newest(camera), gate.generation, true, gate.ended};
  for (const auto& [sequence, frames] : gate.under_way) {
    told.lost.push_back({camera, gate.generation, sequence, PatchOutcome::lost, "device_lost"});
    told.lost_frames += frames;
  }
  gate.under_way.clear();
  gate.known = !gate.ended;
  return told;
}

std::optional<PatchGate::Told> PatchGate::join(const WatchPtr& watch, std::uint32_t generation) {
  book_.put(watch);
  Gate& gate = gates_[watch->name];
  gate.known = true;
  gate.generation = generation;
  gate.ended = false;
  // What its last incarnation had under way earns it nothing, and is still encoded.
  gate.credits = 0;
  gate.under_way.clear();
  if (!gate.open) return std::nullopt;
  return tell(watch->name, gate);
}

bool PatchGate::know(const WatchPtr& watch) {
  if (!book_.put(watch)) return false;
  const auto entry = gates_.find(watch->name);
  return entry != gates_.end() && entry->second.open && entry->second.known;
}

bool PatchGate::pass(const FramePatch& patch) {
  book_.refer(patch.watch);
  const auto entry = gates_.find(patch.watch.camera);
  if (entry == gates_.end()) return false;
  Gate& gate = entry->second;
  const bool current = patch.generation == gate.generation;
  if (current && gate.credits > 0) --gate.credits;
  if (gate.open && current) gate.under_way[patch.sequence] = static_cast<std::uint32_t>(patch.frames.size());
  return gate.open;
}

std::uint32_t PatchGate::grant(const std::string& camera, std::uint32_t room) {
  const auto entry = gates_.find(camera);
  if (entry == gates_.end() || !entry->second.known) return 0;
  Gate& gate = entry->second;
  const std::uint32_t has = gate.credits + static_cast<std::uint32_t>(gate.under_way.size());
  const std::uint32_t more = room > has ? room - has : 0;
  gate.credits += more;
  return more;
}

bool PatchGate::acknowledge(const PatchAck& ack) {
  const auto entry = gates_.find(ack.camera);
  if (entry == gates_.end()) return false;
  Gate& gate = entry->second;
  if (ack.generation != gate.generation || gate.under_way.erase(ack.sequence) == 0 || !gate.known)
    return false;
  // As the camera does: with what was lost it waits for the next grant.
  if (ack.outcome != PatchOutcome::lost) ++gate.credits;
  return true;
}

std::optional<PatchGate::Told> PatchGate::end(const std::string& camera) {
  if (!book_.newest(camera)) return std::nullopt;
  Gate& gate = gates_[camera];
  const bool known = gate.known;
  if (gate.open && !known && gate.ended) return std::nullopt;  // the device has been told
  gate.known = gate.ended = true;
  if (!gate.open) return std::nullopt;
  if (!known) return tell(camera, gate);
  gate.known = false;
  return Told{camera, nullptr, gate.generation, false, true};
}

std::optional<PatchGate::Told> PatchGate::open(const std::string& camera) {
  Gate& gate = gates_[camera];
  gate.open = true;
  if (gate.known) return tell(camera, gate);
  gate.ended = false;
  return std::nullopt;
}

void PatchGate::shut(const std::string& camera) {
  gates_[camera].open = false;
}

}  // namespace vigil::actors
