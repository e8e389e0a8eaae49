// What a node does by its plan: the part of `node_actor.h` that gives cameras to the supervisor, tells
// whoever plans how they fare, and is rid of all before it ends.
#include <algorithm>
#include <utility>

#include "fleet/node/node_actor.h"
#include "fleet/node/plan_progress.h"

namespace vigil::fleet {

using actors::CameraState;

void node_state::plan_changed() {
  greet_needed();
  if (!deps->supervisor) return;
  if (book->settings()) give_cameras();
  tell_drained();
}

void node_state::give_cameras() {
  actors::CameraList list;
  std::map<std::string, cluster::PlannedCamera> known;
  for (const auto& [camera, entry] : plan->own().cameras) {
    if (book->find(camera) == nullptr) {
      unknown.emplace(camera, deps->clock.now());
    } else {
      known.emplace(camera, entry);
    }
  }
  // With whatever comes back comes a new fence. The maker hears of it before anything of the camera does.
  if (deps->maker) {
    for (const auto& [camera, place] : places.places())
      if (!plan->own().cameras.contains(camera)) self->send(deps->maker, moved_atom_v, camera);
    for (const auto& [camera, entry] : known)
      if (!places.places().contains(camera)) self->send(deps->maker, actors::join_atom_v, camera);
  }
  for (const PlaceBook::Left& left : places.follow(known))
    if (const auto link = links.find(left.device); link != links.end())
      self->send(link->second, moved_atom_v, left.camera, left.stream_stays);
  std::set<std::string> own;
  for (const auto& [camera, place] : places.places()) {
    const cluster::PlannedCamera& entry = known.at(camera);
    const base::Clock::WallTime origin{std::chrono::milliseconds(entry.origin_ms)};
    list.cameras.push_back(std::make_shared<const actors::OwnCamera>(
        book->open(camera, entry.rung), actors::Tenure{entry.fence, origin, place.device, place.former,
                                                       refusal_of(entry), place.has_same_stream()}));
    own.insert(camera);
    had.insert(camera);
  }
  book->keep(own);
  if (turns) self->send<caf::message_priority::high>(turns, std::make_shared<const Places>(places.places()));
  // Others are some other node's by the plan, or will be.
  std::erase_if(had, [&](const std::string& camera) {
    const bool removed = !own.contains(camera) && book->find(camera) == nullptr;
    if (removed) list.removed.push_back(camera);
    return removed;
  });
  self->send(deps->supervisor, actors::reload_atom_v, std::move(list));
  link_up();
}

/// Tells up to which fence all cameras that this node was given deliver, or were tried in vain.
void node_state::settle() {
  const auto states = deps->board.cameras();
  member->settle(settled_of(plan->own(), [&](const std::string& camera) {
    const auto state = states.find(camera);
    const bool is_opened = state != states.end() && state->second != CameraState::connecting;
    const auto place = places.places().find(camera);
    // A camera is opened once something computes it.
    const bool is_nowhere = place != places.places().end() && place->second.device.empty();
    return is_opened || is_nowhere;
  }));
}

void node_state::fill() {
  if (!deps->supervisor) return;
  const auto states = deps->board.cameras();
  member->fill(filled_of(plan->own(), [&](const std::string& camera, const cluster::PlannedCamera& entry) {
    const auto state = states.find(camera);
    // Nothing of it comes, so that nothing fills.
    const bool is_down = state != states.end() && state->second == CameraState::down;
    return is_down || filled.contains(entry.stream_fence);
  }));
}

void node_state::drain() {
  is_stopping = true;
  if (member) member->alter([](cluster::NodeRecord& record) { record.state = cluster::NodeState::draining; });
  // Who computes has to know of whom.
  if (plan && deps->dock) plan->follow();
  // Probes are told at once.
  if (member) report();
}

bool node_state::is_drained() const {
  return !plan || fleet::is_drained(deps->record, plan->own(), plan->knows_fleet() ? &plan->fleet() : nullptr,
                                    member->nodes(), bool(deps->dock));
}

void node_state::tell_drained() {
  if (draining.empty() || !is_drained()) return;
  for (auto& promise : std::exchange(draining, {})) promise.deliver(true);
}

}  // namespace vigil::fleet
