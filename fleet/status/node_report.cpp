#include "fleet/status/node_report.h"

#include <algorithm>
#include <array>

namespace vigil::fleet {
namespace {

using cluster::Membership;

using Ends = std::array<std::uint64_t, cluster::kBulkEnds.size()>;

std::map<std::string, std::uint64_t> by_name(const Ends& counts) {
  std::map<std::string, std::uint64_t> named;
  for (const cluster::BulkEnd end : cluster::kBulkEnds)
    if (const std::uint64_t count = counts[static_cast<std::size_t>(end)]; count > 0)
      named.emplace(cluster::name_of(end), count);
  return named;
}

actors::LinkFlow flow_of(const cluster::BulkCounters::Flow& flow) {
  return {flow.bytes, flow.waiting_bytes, by_name(flow.resets)};
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
    figures.degraded = plan.degraded();
    figures.refused = plan.refused();
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
  standing.is_ready = record.state == cluster::NodeState::ready &&
                      (member.state() == Membership::member || member.state() == Membership::cut_off);
  return standing;
}

std::map<std::string, actors::LinkFigures> links_of(
    const std::map<std::string, cluster::NodeRecord>& nodes,
    const std::function<bool(const std::string& node)>& deals_with,
    const std::map<std::string, cluster::BulkCounters>& bulk) {
  std::map<std::string, actors::LinkFigures> links;
  for (const auto& [name, record] : nodes) {
    if (!deals_with(name)) continue;
    actors::LinkFigures& link = links[name];
    const auto counters = bulk.find(name);
    if (counters == bulk.end()) continue;
    const cluster::BulkCounters& bulk_of = counters->second;
    link = {.is_up = bulk_of.outgoing.open && bulk_of.incoming.open,
            .outgoing = flow_of(bulk_of.outgoing),
            .incoming = flow_of(bulk_of.incoming),
            .blocked = bulk_of.blocked,
            .dials = bulk_of.dials,
            .failed_dials = by_name(bulk_of.failed_dials)};
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
