#include "fleet/status/node_report.h"

#include <algorithm>

namespace vigil::fleet {
namespace {

using cluster::Membership;

actors::LinkFlow flow_of(const cluster::BulkCounters::Flow& flow) {
  actors::LinkFlow told{flow.bytes, flow.waiting_bytes};
  for (const cluster::BulkEnd end : cluster::kBulkEnds) {
    const std::uint64_t count = flow.of(end);
    if (count > 0) told.resets.emplace(cluster::name_of(end), count);
  }
  return told;
}

}  // namespace

actors::FleetFigures figures_of(const cluster::FleetMember& member, const cluster::PlanKeeper& plan) {
  actors::FleetFigures figures{.is_member = member.state() == Membership::member,
                               .is_planner = member.is_planner(),
                               .registry_answers = member.registry_answers(),
                               .configuration = member.record().config};
  for (const auto& [camera, entry] : plan.own().cameras)
    if (entry.hand_to.empty()) ++figures.owned;
  for (const auto& [name, record] : member.nodes())
    ++figures.nodes[std::string(cluster::name_of(record.state))];
  if (figures.is_planner) {
    figures.handing_over = plan.handovers();
    figures.unplaced = plan.unplaced().size();
  }
  return figures;
}

actors::FleetStanding standing_of(const std::string& fleet, const cluster::FleetMember& member) {
  const cluster::NodeRecord& record = member.record();
  actors::FleetStanding standing{.fleet = fleet,
                                 .node = record.name,
                                 .state = std::string(cluster::name_of(record.state)),
                                 .membership = std::string(cluster::name_of(member.state())),
                                 .registry_answers = member.registry_answers(),
                                 .registry_remark = member.registry_remark(),
                                 .planner = member.planner(),
                                 .configuration = record.config};
  for (const cluster::NodeRole role : record.roles) standing.roles.emplace_back(cluster::name_of(role));
  standing.is_ready = member.state() == Membership::member || member.state() == Membership::cut_off;
  return standing;
}

std::map<std::string, actors::LinkFigures> links_of(
    const std::map<std::string, cluster::NodeRecord>& nodes, const std::string& self,
    const std::map<std::string, cluster::BulkCounters>& bulk) {
  std::map<std::string, actors::LinkFigures> links;
  for (const auto& [name, record] : nodes) {
    if (name == self) continue;
    actors::LinkFigures& link = links[name];
    const auto counters = bulk.find(name);
    if (counters == bulk.end()) continue;
    const auto& [outgoing, incoming, refused, blocked, dials, failed] = counters->second;
    link = {outgoing.open && incoming.open, flow_of(outgoing), flow_of(incoming)};
  }
  return links;
}

void NodeReport::tell(const cluster::FleetMember& member, const cluster::PlanKeeper& plan) {
  board_.beat("node", kPatience);
  was_member_ = was_member_ || member.state() == Membership::member;
  actors::FleetStanding standing = standing_of(options_.fleet, member);
  tell_phase(standing);
  board_.fleet(std::move(standing));
  if (series_ != nullptr) series_->tell(figures_of(member, plan));
}

void NodeReport::tell_phase(const actors::FleetStanding& standing) {
  if (!options_.tells_phase) return;
  actors::RunPhase phase = phase_;
  if (phase == actors::RunPhase::starting && was_member_ && board_.computes())
    phase = actors::RunPhase::running;
  if (standing.state == "draining") phase = actors::RunPhase::draining;
  if (std::exchange(phase_, phase) == phase) return;
  board_.phase(phase);
  // There is none that would say so again.
  board_.silent("supervisor");
}

void NodeReport::end() {
  board_.silent("node");
}

}  // namespace vigil::fleet
