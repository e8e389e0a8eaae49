// What a node does by its plan: the part of `node_actor.h` that gives cameras to the supervisor, tells
// whoever plans how they fare, and is rid of all before it ends.
#include <algorithm>
#include <utility>

#include "fleet/node/node_actor.h"

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
  Places now;
  std::set<std::string> own;
  for (const auto& [camera, entry] : plan->own().cameras) {
    if (book->find(camera) == nullptr) {
      unknown.emplace(camera, deps->clock.now());
      continue;
    }
    const base::Clock::WallTime origin{std::chrono::milliseconds(entry.origin_ms)};
    const Place& place =
        now[camera] = {device_of(entry.vision, entry.stream), former_device_of(entry), entry.stream_fence};
    list.cameras.push_back(std::make_shared<const actors::OwnCamera>(
        book->open(camera, entry.rung), actors::Tenure{entry.fence, origin, place.device, place.former}));
    own.insert(camera);
  }
  book->keep(own);
  // With whatever comes back comes a new fence. The maker hears of it before anything of the camera does.
  if (deps->maker) {
    for (const auto& [camera, place] : places)
      if (!plan->own().cameras.contains(camera)) self->send(deps->maker, moved_atom_v, camera);
    for (const auto& [camera, place] : now)
      if (!places.contains(camera)) self->send(deps->maker, actors::join_atom_v, camera);
  }
  // What is left of a camera where it is not computed any more.
  for (const auto& [camera, place] : now) {
    const auto before = places.find(camera);
    if (before == places.end()) continue;
    for (const std::string& device : {before->second.device, before->second.former})
      if (const auto link = links.find(device);
          link != links.end() && device != place.device && device != place.former)
        self->send(link->second, moved_atom_v, camera);
  }
  places = std::move(now);
  if (turns) self->send<caf::message_priority::high>(turns, std::make_shared<const Places>(places));
  for (const auto& [camera, place] : places) had.insert(camera);
  // Others are some other node's by the plan, or will be.
  std::erase_if(had, [&](const std::string& camera) {
    const bool removed = !places.contains(camera) && book->find(camera) == nullptr;
    if (removed) list.removed.push_back(camera);
    return removed;
  });
  self->send(deps->supervisor, actors::reload_atom_v, std::move(list));
  link_up();
}

/// Tells up to which fence all cameras that this node was given deliver, or were tried in vain.
void node_state::settle() {
  const auto states = deps->board.cameras();
  std::map<cluster::Fence, bool> tried;
  for (const auto& [camera, entry] : plan->own().cameras) {
    if (!entry.hand_to.empty()) continue;
    const auto state = states.find(camera);
    tried[entry.fence] = state != states.end() && state->second != CameraState::connecting;
  }
  member->settle(cluster::settled_up_to(tried));
}

void node_state::fill() {
  if (!deps->supervisor) return;
  const auto states = deps->board.cameras();
  std::set<cluster::Fence> full;
  for (const auto& [camera, entry] : plan->own().cameras) {
    if (entry.former_stream.empty() || !entry.hand_to.empty()) continue;
    const auto state = states.find(camera);
    // Nothing of it comes, so that nothing fills.
    const bool is_down = state != states.end() && state->second == CameraState::down;
    if (is_down || filled.contains(entry.stream_fence)) full.insert(entry.stream_fence);
  }
  member->fill(full);
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
  if (!plan) return true;
  if (!plan->own().cameras.empty()) return false;
  // Where nobody else computes, there is nothing to wait for.
  const auto could = [this](const auto& node) {
    const auto does = [&](cluster::NodeRole role) {
      return deps->record.roles.contains(role) && node.second.roles.contains(role);
    };
    return node.first != deps->record.name && node.second.state == cluster::NodeState::ready &&
           (does(cluster::NodeRole::vision) || does(cluster::NodeRole::stream));
  };
  if (!deps->dock || std::ranges::none_of(member->nodes(), could)) return true;
  return plan->knows_fleet() && !computes(plan->fleet(), member->nodes(), deps->record.name);
}

void node_state::tell_drained() {
  if (draining.empty() || !is_drained()) return;
  for (auto& promise : std::exchange(draining, {})) promise.deliver(true);
}

}  // namespace vigil::fleet
