// What one node asks another one about itself, to show the fleet to people, and what it is told.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/status/status_board.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/planning/plan_keeper.h"

namespace vigil::fleet {

struct NodeQuestion {
  /// Whose states are wanted, and, of the node that plans, why they have no node: `kMost` at most.
  std::vector<std::string> cameras = {};
  /// All that it was given: where the registry does not tell.
  bool plan = false;

  static constexpr std::size_t kMost = 1000;
  friend bool operator==(const NodeQuestion&, const NodeQuestion&) = default;
};

/// As the asked node says of itself.
struct NodeAnswer {
  struct Camera {
    std::string state;
    std::string reason;
    /// Since it entered that state.
    base::Duration age{0};
    friend bool operator==(const Camera&, const Camera&) = default;
  };

  std::string membership = "joining";
  /// Its lease holds for so long, if it is not kept alive; nothing: it has none.
  std::optional<base::Duration> lease_left = {};
  bool registry_answers = false;
  std::string registry_remark = {};
  bool is_ready = false;
  /// Of a gateway: why it does not serve; empty if it does.
  std::string gateway = {};
  /// Cameras that it was given and does not hand over, by state; "unknown": nothing is told of it yet.
  std::map<std::string, std::size_t> states = {};
  /// Of those that were asked for, what it knows.
  std::map<std::string, Camera> cameras = {};
  /// If it plans: how many have no owner or no stream, and why, of those that were asked for.
  std::optional<std::size_t> unplaced = {};
  std::map<std::string, std::string> why_unplaced = {};
  std::optional<cluster::NodePlan> plan = {};
  friend bool operator==(const NodeAnswer&, const NodeAnswer&) = default;
};

/// JSON of one line.
std::string print(const NodeQuestion& question);
std::string print(const NodeAnswer& answer);
/// Throw std::runtime_error: one line.
NodeQuestion parse_question(std::string_view json);
NodeAnswer parse_node_answer(std::string_view json);

NodeAnswer answer_of(const cluster::FleetMember& member, const cluster::PlanKeeper& plan,
                     const actors::StatusBoard& board, const NodeQuestion& question);

}  // namespace vigil::fleet
