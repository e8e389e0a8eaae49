// The part of the node's shell that tells of it: to its metrics and probes, to other nodes, and to whoever
// shows the fleet.
#include "fleet/evidence/evidence_chunk.h"
#include "fleet/node/node_actor.h"
#include "fleet/status/node_answer.h"

namespace vigil::fleet {

void node_state::saw(cluster::Fence fence) {
  if (member) member->saw(fence);
}

void node_state::report() {
  reporter->tell(*member, *plan);
  if (deps->ways.bulk != nullptr && reporter->wants_links())
    reporter->links(links_of(member->nodes(), member->record().name, deps->ways.bulk->counters()));
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
  now->own = plan->own();
  if (member->is_planner()) now->unplaced = plan->unplaced();
  return now;
}

}  // namespace vigil::fleet
