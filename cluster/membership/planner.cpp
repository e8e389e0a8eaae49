#include "cluster/membership/planner.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <set>
#include <utility>

#include "cluster/placement/placement.h"

namespace vigil::cluster {
namespace {

using Rooms = std::vector<PlacementNode>;

/// Those that have all these roles, and how much of them is left.
Rooms nodes_with(const std::map<std::string, NodeRecord>& nodes, const std::set<NodeRole>& roles,
                 double NodeRecord::*capacity) {
  Rooms rooms;
  for (const auto& [name, node] : nodes) {
    if (!std::includes(node.roles.begin(), node.roles.end(), roles.begin(), roles.end())) continue;
    if (node.state == NodeState::joining) continue;
    rooms.push_back(
        {.name = name,
         .weight = node.weight,
         .capacity = node.*capacity > 0 ? node.*capacity : std::numeric_limits<double>::infinity(),
         .state = node.state == NodeState::draining ? PlacementNodeState::draining : PlacementNodeState::in});
  }
  return rooms;
}

class Desk {
 public:
  Desk(const PlanningInput& input, const PlannerOptions& options) : input_(input), options_(options) {
    for (const auto& [node, plan] : input.plan) {
      fence_ = std::max(fence_, plan.fence);
      for (const auto& [camera, entry] : plan.cameras) {
        fence_ = std::max(fence_, entry.fence);
        auto& owner = owners_[camera];
        if (owner.entry == nullptr || entry.fence > owner.entry->fence) owner = {node, &entry};
      }
    }
    for (const auto& [name, node] : input.nodes) {
      is_set_back_ = is_set_back_ || node.highest_fence > fence_;
      seen_ = std::max(seen_, node.highest_fence);
    }
    fence_ = std::max(fence_, seen_);
    for (const WantedCamera& camera : input.cameras) wanted_.insert(camera.name);
  }

  Planning run() {
    keep_handovers();
    place_cameras();
    place_streams();
    return {changes(), std::move(unplaced_), handovers_};
  }

 private:
  struct Owner {
    std::string node;
    const PlannedCamera* entry = nullptr;
  };

  bool is_there(const std::string& node) const { return input_.nodes.contains(node); }

  /// Former owners that go on: those that live, whose successors live and have not settled.
  void keep_handovers() {
    for (const auto& [node, plan] : input_.plan) {
      if (!is_there(node)) continue;
      for (const auto& [camera, entry] : plan.cameras) {
        const Owner& owner = owners_.at(camera);
        if (owner.node == node || !wanted_.contains(camera) || !is_there(owner.node)) continue;
        if (input_.nodes.at(owner.node).settled >= owner.entry->fence) continue;
        PlannedCamera former = entry;
        former.hand_to = owner.node;
        next_[node].cameras[camera] = std::move(former);
        ++handovers_;
      }
    }
  }

  std::size_t moves_left() const {
    return options_.most_moves > handovers_ ? options_.most_moves - handovers_ : 0;
  }

  void place_cameras() {
    std::vector<PlacementItem> items;
    for (const WantedCamera& camera : input_.cameras) {
      const auto owner = owners_.find(camera.name);
      items.push_back({camera.name, camera.camera_load, owner == owners_.end() ? "" : owner->second.node});
    }
    const Placement placed = place(nodes_with(input_.nodes, {NodeRole::camera}, &NodeRecord::cameras), items,
                                   {.role = "camera", .slack = options_.slack, .most_moves = moves_left()});
    for (const Place& place : placed.places) take(place);
  }

  void take(const Place& place) {
    const auto owner = owners_.find(place.item);
    const bool had_one = owner != owners_.end();
    if (!place.is_placed()) {
      unplaced_[place.item] = why(place, "camera");
      return;
    }
    PlannedCamera entry;
    if (had_one) entry = *owner->second.entry;
    entry.hand_to.clear();
    if (is_set_back_) entry.fence = ++fence_;
    if (!had_one || owner->second.node != place.node) {
      entry.fence = ++fence_;
      entry.why = why(place, "camera");
      if (!had_one)
        entry.origin_ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(input_.wall.time_since_epoch()).count();
      if (had_one && is_there(owner->second.node)) {
        PlannedCamera former = *owner->second.entry;
        former.hand_to = place.node;
        next_[owner->second.node].cameras[place.item] = std::move(former);
        ++handovers_;
      }
    }
    next_[place.node].cameras[place.item] = entry;
    current_[place.item] = place.node;
  }

  /// The windows of each camera that has an owner; its patches and explanations beside them, if that node
  /// does those too.
  void place_streams() {
    const auto stream = place_on("stream", NodeRole::stream, &PlannedCamera::stream);
    for (auto& [camera, node] : current_) {
      PlannedCamera& entry = next_.at(node).cameras.at(camera);
      const auto found = stream.find(camera);
      if (found == stream.end()) {
        entry.stream.clear();
        continue;
      }
      if (found->second.node != entry.stream) entry.why_stream = found->second.why;
      entry.stream = found->second.node;
    }
    beside("vision", NodeRole::vision, &PlannedCamera::vision);
    beside("generate", NodeRole::generate, &PlannedCamera::generate);
  }

  struct Found {
    std::string node;
    std::string why;
  };

  std::map<std::string, Found> place_on(const std::string& role, NodeRole needed,
                                        std::string PlannedCamera::*field) {
    std::vector<PlacementItem> items;
    for (const WantedCamera& camera : input_.cameras) {
      const auto node = current_.find(camera.name);
      if (node == current_.end()) continue;
      items.push_back(
          {camera.name, camera.stream_load, next_.at(node->second).cameras.at(camera.name).*field});
    }
    const Placement placed =
        place(nodes_with(input_.nodes, {needed}, &NodeRecord::streams), items,
              {.role = role, .slack = options_.slack, .most_moves = options_.most_moves});
    std::map<std::string, Found> found;
    for (const Place& place : placed.places) {
      if (place.is_placed()) {
        found[place.item] = {place.node, why(place, role)};
      } else {
        unplaced_[place.item] = why(place, role);
      }
    }
    return found;
  }

  void beside(const std::string& role, NodeRole needed, std::string PlannedCamera::*field) {
    const auto does = [&](const std::string& node) {
      const auto found = input_.nodes.find(node);
      return found != input_.nodes.end() && found->second.roles.contains(needed);
    };
    std::optional<std::map<std::string, Found>> apart;
    for (auto& [camera, node] : current_) {
      PlannedCamera& entry = next_.at(node).cameras.at(camera);
      if (entry.stream.empty()) {
        (entry.*field).clear();
      } else if (does(entry.stream)) {
        entry.*field = entry.stream;
      } else {
        if (!apart) apart = place_on(role, needed, field);
        const auto found = apart->find(camera);
        entry.*field = found == apart->end() ? "" : found->second.node;
      }
    }
  }

  std::vector<PlanChange> changes() const {
    std::vector<PlanChange> given;
    std::vector<PlanChange> taken;
    /// The highest that what is written then remembers.
    Fence remembered = 0;
    for (const auto& [node, plan] : next_) {
      const auto before = input_.plan.find(node);
      if (before != input_.plan.end() && before->second.cameras == plan.cameras) {
        remembered = std::max(remembered, before->second.fence);
        continue;
      }
      const bool loses = before != input_.plan.end() &&
                         std::ranges::any_of(before->second.cameras, [&now = plan.cameras](const auto& each) {
                           return !now.contains(each.first);
                         });
      NodePlan written = plan;
      written.fence = remembered = fence_;
      (loses ? taken : given).push_back({node, std::move(written)});
    }
    for (const auto& [node, plan] : input_.plan) {
      if (next_.contains(node)) continue;
      if (remembered >= fence_) {
        taken.push_back({node, std::nullopt});
        continue;
      }
      // One stays without a camera: nodes that are started anew know nothing of the fences that were given.
      NodePlan kept;
      kept.fence = remembered = fence_;
      if (plan != kept) taken.push_back({node, std::move(kept)});
    }
    std::ranges::move(taken, std::back_inserter(given));
    return given;
  }

  const PlanningInput& input_;
  const PlannerOptions& options_;
  /// The highest that anybody has seen.
  Fence fence_ = 0;
  Fence seen_ = 0;
  bool is_set_back_ = false;
  std::map<std::string, Owner> owners_;
  std::set<std::string> wanted_;
  std::map<std::string, NodePlan> next_;
  /// The new owner of each camera.
  std::map<std::string, std::string> current_;
  std::map<std::string, std::string> unplaced_;
  std::size_t handovers_ = 0;
};

}  // namespace

Planning plan_fleet(const PlanningInput& input, const PlannerOptions& options) {
  return Desk(input, options).run();
}

}  // namespace vigil::cluster
