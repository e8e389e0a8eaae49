// What is known of a fleet at one moment, as people are shown it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/duration.h"
#include "fleet/messages/fleet_query.h"
#include "fleet/messages/node_standing.h"
#include "fleet/status/node_answer.h"
#include "fleet/status/plan_index.h"

namespace vigil::fleet {

struct FleetPicture {
  struct Node {
    /// What it said, or why it said nothing.
    std::optional<NodeAnswer> answer;
    std::string fault;
    /// Since it last answered this node, whatever was asked; nothing: it never did.
    std::optional<base::Duration> heard;
  };

  /// Of the node that shows it. Not null.
  NodeStandingPtr standing;
  /// Not null. Where the registry does not tell, it is made of what nodes say that they were given, and, of
  /// nodes that do not answer, of what the registry told last.
  std::shared_ptr<const PlanIndex> plan;
  /// Since the registry told the plan; nothing: it never did.
  std::optional<base::Duration> plan_age;
  /// Why it does not tell it now; empty if it does.
  std::string registry_fault;
  std::map<std::string, Node> nodes;
};

/// The cameras that an answer is to list, by name: those of the plan, and those that are wanted and have no
/// node. `more`: there are others behind them.
struct FleetPage {
  std::vector<std::string> cameras;
  bool more = false;
};
FleetPage page_of(const FleetQuery& query, const PlanIndex& plan, const std::vector<std::string>& wanted);

/// What is to be asked of each node that is there, for that page.
std::map<std::string, NodeQuestion> questions_of(const NodeStanding& standing, const PlanIndex& plan,
                                                 const FleetPage& page, bool wants_plans);

/// The plan as the nodes tell it, beside what was known of those that do not answer.
std::shared_ptr<const cluster::FleetPlan> plan_told(const cluster::FleetPlan& known,
                                                    const std::map<std::string, FleetPicture::Node>& nodes);

/// JSON, as docs/fleet.schema.json says; times are ages.
std::string print(const FleetPicture& picture, const FleetQuery& query, const FleetPage& page);

/// Whether there is such a camera, as far as is known: in the plan, or in the node's configuration.
bool knows(const FleetPicture& picture, const std::string& camera);

/// Where a camera is and why, and what keeps it from being watched, in sentences.
std::vector<std::string> explain(const FleetPicture& picture, const std::string& camera);

}  // namespace vigil::fleet
