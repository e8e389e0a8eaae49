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

  /// It is gone, or not ready to be given anything.
  bool is_away(const std::string& node) const {
    const auto record = input_.nodes.find(node);
    return record == input_.nodes.end() || record->second.state == NodeState::joining;
  }

  /// There is a node of that name, and it is not the run of it that has the plan.
  bool began_anew(const std::string& node) const {
    const auto record = input_.nodes.find(node);
    const auto plan = input_.plan.find(node);
    return record != input_.nodes.end() && plan != input_.plan.end() &&
           !plan->second.is_for(record->second.incarnation);
  }

  /// Former owners that go on: those that live, whose successors live and have not settled.
  void keep_handovers() {
    for (const auto& [node, plan] : input_.plan) {
      if (!is_there(node) || began_anew(node)) continue;
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
      // What is known of it stays written where it was: its time and its fences go on from there, at whoever
      // has it next.
      if (had_one && is_away(owner->second.node))
        next_[owner->second.node].cameras[place.item] = *owner->second.entry;
      return;
    }
    PlannedCamera entry;
    if (had_one) entry = *owner->second.entry;
    entry.hand_to.clear();
    const bool stays = had_one && owner->second.node == place.node;
    if (is_set_back_ || (stays && began_anew(place.node))) entry.fence = ++fence_;
    if (!stays) {
      entry.fence = ++fence_;
      entry.why = why(place, "camera");
      if (!had_one)
        entry.origin_ms =
            std::chrono::duration_cast<std::chrono::milliseconds>(input_.wall.time_since_epoch()).count();
      if (had_one && is_there(owner->second.node) && !began_anew(owner->second.node)) {
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
    std::vector<PlacementItem> items;
    for (const WantedCamera& camera : input_.cameras)
      if (const auto node = current_.find(camera.name); node != current_.end())
        items.push_back(
            {camera.name, camera.stream_load, next_.at(node->second).cameras.at(camera.name).stream});
    const auto stream =
        place_on("stream", nodes_with(input_.nodes, {NodeRole::stream}, &NodeRecord::streams), items);
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
    beside("vision", NodeRole::vision, &PlannedCamera::vision, &WantedCamera::vision_load,
           &PlannedCamera::why_vision);
    beside("generate", NodeRole::generate, &PlannedCamera::generate, &WantedCamera::stream_load, nullptr);
  }

  struct Found {
    std::string node;
    std::string why;
  };

  std::map<std::string, Found> place_on(const std::string& role, const Rooms& rooms,
                                        const std::vector<PlacementItem>& items) {
    const Placement placed =
        place(rooms, items, {.role = role, .slack = options_.slack, .most_moves = options_.most_moves});
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

  /// What the streams' nodes do themselves, if they have the role; of the other cameras, what others do in
  /// the room that their own streams leave them.
  void beside(const std::string& role, NodeRole needed, std::string PlannedCamera::*field,
              double WantedCamera::*load, std::string PlannedCamera::*reason) {
    const auto does = [&](const std::string& node) {
      const auto found = input_.nodes.find(node);
      return found != input_.nodes.end() && found->second.roles.contains(needed);
    };
    std::vector<PlacementItem> apart;
    std::map<std::string, double> taken;
    for (const WantedCamera& camera : input_.cameras) {
      const auto node = current_.find(camera.name);
      if (node == current_.end()) continue;
      PlannedCamera& entry = next_.at(node->second).cameras.at(camera.name);
      taken[entry.stream] += camera.stream_load;
      if (!entry.stream.empty() && !does(entry.stream)) {
        apart.push_back({camera.name, camera.*load, entry.*field});
        continue;
      }
      entry.*field = entry.stream;
      if (reason != nullptr) (entry.*reason).clear();
    }
    if (apart.empty()) return;
    Rooms rooms = nodes_with(input_.nodes, {needed}, &NodeRecord::streams);
    for (PlacementNode& room : rooms) room.capacity = std::max(0.0, room.capacity - taken[room.name]);
    const auto found = place_on(role, rooms, apart);
    for (const PlacementItem& item : apart) {
      PlannedCamera& entry = next_.at(current_.at(item.name)).cameras.at(item.name);
      const auto place = found.find(item.name);
      const std::string node = place == found.end() ? "" : place->second.node;
      if (reason != nullptr && node != entry.*field) entry.*reason = node.empty() ? "" : place->second.why;
      entry.*field = node;
    }
  }

  std::vector<PlanChange> changes() const {
    std::vector<PlanChange> given;
    std::vector<PlanChange> taken;
    for (const auto& [node, plan] : next_) {
      const auto before = input_.plan.find(node);
      // Of one that is away it is the run before that had it; there is a plan of that.
      const std::string& incarnation =
          is_away(node) ? before->second.incarnation : input_.nodes.at(node).incarnation;
      if (before != input_.plan.end() && before->second.cameras == plan.cameras &&
          before->second.incarnation == incarnation)
        continue;
      const bool loses = before != input_.plan.end() &&
                         std::ranges::any_of(before->second.cameras, [&now = plan.cameras](const auto& each) {
                           return !now.contains(each.first);
                         });
      NodePlan written = plan;
      written.fence = fence_;
      written.incarnation = incarnation;
      (loses ? taken : given).push_back({node, std::move(written)});
    }
    for (const auto& [node, plan] : input_.plan)
      if (!next_.contains(node)) taken.push_back({node, std::nullopt});
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
