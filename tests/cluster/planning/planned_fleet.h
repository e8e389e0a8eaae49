// A fleet as the planner sees it, which does what it is planned to.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "cluster/planning/planner.h"

namespace vigil::cluster::testing {

class PlannedFleet : public ::testing::Test {
 protected:
  NodeRecord& add(const std::string& name, std::set<NodeRole> roles) {
    NodeRecord record;
    record.name = name;
    record.roles = std::move(roles);
    record.state = NodeState::ready;
    return input_.nodes[name] = record;
  }
  NodeRecord& gpu(const std::string& name) {
    return add(name, {NodeRole::vision, NodeRole::stream, NodeRole::generate});
  }
  /// As it is read by the next one that plans.
  void write(const PlanChange& change) {
    if (change.plan) {
      input_.plan[change.node] = parse_plan(print(*change.plan));
    } else {
      input_.plan.erase(change.node);
    }
  }

  PlanningInput input_{{}, {}, {}, {}, base::Clock::WallTime(std::chrono::seconds(1'790'000'000))};
  PlannerOptions options_;
};

}  // namespace vigil::cluster::testing
