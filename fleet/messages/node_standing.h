// What a node knows of its fleet, at one moment.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/duration.h"
#include "cluster/membership/config_agreement.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/planning/plan.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

/// Within a process alone.
struct NodeStanding {
  std::string fleet;
  cluster::NodeRecord record;
  cluster::Membership membership = cluster::Membership::joining;
  std::optional<base::Duration> lease_left;
  bool registry_answers = false;
  std::string registry_remark;
  /// Who plans; empty if nobody does.
  std::string planner;
  /// Those that are there, this one included, as the registry last told.
  std::map<std::string, cluster::NodeRecord> nodes;
  /// Ways to those that are known, and why there is none to others.
  std::map<std::string, greeter_actor> ways;
  std::map<std::string, std::string> troubles;
  /// Those with which this node does not deal, so that it has no way to them: a gateway has.
  std::set<std::string> strangers;
  /// What this node was given.
  cluster::NodePlan own;
  /// If it plans: cameras without an owner or a stream, and why.
  std::map<std::string, std::string> unplaced;
  /// The cameras of its configuration that are to be watched, by name.
  std::vector<std::string> wanted;
  /// What the fleet runs by, as far as this node knows; and what holds a change of it up, by line.
  cluster::FleetConfig configuration;
  std::vector<std::string> configuration_waits;
};

}  // namespace vigil::fleet
