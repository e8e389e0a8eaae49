// The part of the node's shell that tells of it: to its metrics and probes, to other nodes, and to whoever
// shows the fleet.
#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include "fleet/evidence/evidence_chunk.h"
#include "fleet/messages/clip_wish.h"
#include "fleet/node/node_actor.h"
#include "fleet/status/node_answer.h"

namespace vigil::fleet {
namespace {

constexpr std::chrono::seconds kFencePatience{5};

}  // namespace

void node_state::ask_for_fences() {
  if (deps->dock)
    self->request(deps->dock, kFencePatience, fence_atom_v)
        .then([this](std::uint64_t fence) { saw(fence); }, [](const caf::error&) {});
  if (deps->gateway)
    self->request(deps->gateway, kFencePatience, fence_atom_v)
        .then([this](std::uint64_t fence) { kept(fence); }, [](const caf::error&) {});
}

void node_state::saw(cluster::Fence fence) {
  if (member) member->saw(fence);
}

void node_state::kept(cluster::Fence fence) {
  if (!member || fence == 0) return;
  // What was on its disk may be newer than a registry that was set back while no node was there. Later ones
  // come from nodes that are, and go with what is told next: each move of a camera would be a write
  // otherwise.
  if (std::exchange(has_told_kept, true)) return saw(fence);
  refused(fence);
}

void node_state::refused(cluster::Fence fence) {
  if (!member || fence <= member->record().highest_fence) return;
  member->saw(fence);
  // By the plan it is this node's turn: who planned that may not know of whoever had that fence.
  member->doubt();
}

void node_state::refused(const std::string& camera, cluster::Fence fence) {
  refused(fence);
  if (!plan) return;
  refusals.refused(camera, fence);
  tell_refused();
}

void node_state::tell_refused() {
  member->refuse(refusals.too_low(plan->own().cameras));
}

void node_state::report() {
  reporter->tell(*member, *plan);
  if (deps->ways.bulk != nullptr && reporter->wants_links())
    reporter->links(links_of(
        member->nodes(), [this](const std::string& node) { return desk->deals_with(node); },
        deps->ways.bulk->counters()));
}

void node_state::tell_texts() {
  std::map<std::string, std::pair<caf::actor_addr, TextsAt>> told;
  for (const auto& [camera, entry] : plan->own().cameras) {
    const auto link = links.find(device_of(entry.vision, entry.stream));
    if (link == links.end()) continue;
    const TextsAt place{camera, entry.fence, entry.generate == entry.stream ? "" : entry.generate};
    const auto address = link->second.address();
    const auto before = texts_told.find(camera);
    if (before == texts_told.end() || before->second != std::pair(address, place))
      self->send(link->second, place);
    told[camera] = {address, place};
  }
  texts_told = std::move(told);
}

caf::result<std::string> node_state::tell_of(const std::string& question) const {
  try {
    const NodeQuestion asked = parse_question(question);
    return print(member ? answer_of(*member, *plan, deps->board, asked) : NodeAnswer());
  } catch (const std::exception& error) {
    return caf::make_error(caf::sec::invalid_argument, std::string(error.what()));
  }
}

caf::result<std::uint64_t> node_state::find_evidence(const std::string& file) {
  if (!deps->fetcher) return std::uint64_t{0};
  return self->delegate(deps->fetcher, find_atom_v, file);
}

caf::result<std::string> node_state::find_clips(const std::string& text) const {
  const auto wish = parse_clip_wish(text);
  if (!wish) return caf::make_error(caf::sec::invalid_argument, std::string("no wish for clips"));
  return print(found_of(*wish, deps->clips));
}

void node_state::hear(const BulkArrivalPtr& arrival) {
  if (is_chunk(arrival->received.message)) {
    if (deps->fetcher) self->send(deps->fetcher, arrival);
  } else if (deps->dock) {
    self->send(deps->dock, arrival);
  }
}

NodeStandingPtr node_state::standing() const {
  auto now = std::make_shared<NodeStanding>();
  now->fleet = deps->fleet;
  now->record = deps->record;
  if (book) now->wanted = book->names();
  if (!member) return now;
  now->record = member->record();
  now->membership = member->state();
  now->lease_left = member->lease_left();
  now->registry_answers = member->registry_answers();
  now->registry_remark = member->registry_remark();
  now->planner = member->planner();
  now->nodes = member->nodes();
  for (const auto& [node, greeter] : greeters)
    if (desk->knows(node)) now->ways.emplace(node, greeter);
  now->troubles = desk->troubles();
  for (const auto& [node, record] : now->nodes)
    if (node != now->record.name && !desk->deals_with(node)) now->strangers.insert(node);
  now->own = plan->own();
  if (configuration) {
    now->configuration = configuration->agreement().current();
    now->configuration_waits = configuration->pending();
  }
  if (member->is_planner()) now->unplaced = plan->unplaced();
  return now;
}

}  // namespace vigil::fleet
