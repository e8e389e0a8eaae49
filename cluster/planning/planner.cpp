#include "cluster/planning/planner.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "cluster/placement/placement.h"
#include "cluster/planning/reachability.h"
#include "cluster/planning/stream_admission.h"

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

/// What those of them have room for that are ready; nothing if there is none.
std::optional<double> taken_capacity(const Rooms& rooms) {
  std::optional<double> capacity;
  for (const PlacementNode& room : rooms)
    if (room.state == PlacementNodeState::in) capacity = capacity.value_or(0) + room.capacity;
  return capacity;
}

class Desk {
 public:
  Desk(const PlanningInput& input, const PlannerOptions& options)
      : input_(input), options_(options), reach_(input.nodes), streams_(input.cameras, options.margin) {
    for (const auto& [node, plan] : input.plan) {
      fence_ = std::max(fence_, plan.fence);
      for (const auto& [camera, entry] : plan.cameras) {
        fence_ = std::max(fence_, entry.fence);
        auto& owner = owners_[camera];
        if (owner.entry == nullptr || entry.fence > owner.entry->fence) owner = {node, &entry};
      }
    }
    Fence seen = 0;
    for (const auto& [name, node] : input.nodes) {
      is_set_back_ = is_set_back_ || node.highest_fence > fence_;
      seen = std::max(seen, node.highest_fence);
    }
    for (const auto& [node, fences] : input.refused)
      if (!fences.empty()) seen = std::max(seen, *fences.rbegin());
    // Of what was sent nothing tells that the registry was set back.
    fence_ = std::max({fence_, seen, input.least_fence});
    for (const WantedCamera& camera : input.cameras) wanted_.insert(camera.name);
  }

  Planning run() {
    keep_handovers();
    place_cameras();
    place_streams();
    return {changes(),       std::move(unplaced_), handovers_,
            formers_.size(), streams_.degraded(),  streams_.refused()};
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

  bool is_draining(const std::string& node) const {
    const auto record = input_.nodes.find(node);
    return record != input_.nodes.end() && record->second.state == NodeState::draining;
  }

  /// There is a node of that name, and it is not the run of it that has the plan.
  bool began_anew(const std::string& node) const {
    const auto record = input_.nodes.find(node);
    const auto plan = input_.plan.find(node);
    return record != input_.nodes.end() && plan != input_.plan.end() &&
           !plan->second.is_for(record->second.incarnation);
  }

  bool is_refused(const std::string& node, Fence fence) const {
    const auto refused = input_.refused.find(node);
    return refused != input_.refused.end() && refused->second.contains(fence);
  }

  /// Former owners that go on: those that live, whose successors live and have not settled.
  void keep_handovers() {
    for (const auto& [node, plan] : input_.plan) {
      if (!is_there(node) || began_anew(node)) continue;
      for (const auto& [camera, entry] : plan.cameras) {
        const Owner& owner = owners_.at(camera);
        if (owner.node == node || !wanted_.contains(camera) || !is_there(owner.node)) continue;
        const auto settled = input_.settled.find(owner.node);
        if (settled != input_.settled.end() && settled->second >= owner.entry->fence) continue;
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
    const PlacementBars* const bars = reach_.bars_for_owners();
    std::vector<PlacementItem> items;
    for (const WantedCamera& camera : input_.cameras) {
      const auto owner = owners_.find(camera.name);
      items.push_back({camera.name, 1, owner == owners_.end() ? "" : owner->second.node, bars});
    }
    Rooms rooms = nodes_with(input_.nodes, {NodeRole::camera}, &NodeRecord::cameras);
    for (PlacementNode& room : rooms)
      room.capacity = std::min(room.capacity, options_.most_cameras_of_a_node);
    const Placement placed =
        place(rooms, items, {.role = "camera", .slack = options_.slack, .most_moves = moves_left()});
    for (const Place& place : placed.places) take(place);
  }

  /// Of one that no plan has.
  std::int64_t origin_of(const std::string& camera) const {
    if (const auto known = input_.origins.find(camera); known != input_.origins.end()) return known->second;
    return std::chrono::duration_cast<std::chrono::milliseconds>(input_.wall.time_since_epoch()).count();
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
    if (is_set_back_ || (stays && (began_anew(place.node) || is_refused(place.node, entry.fence))))
      entry.fence = ++fence_;
    if (!stays) {
      entry.fence = ++fence_;
      entry.why = why(place, "camera");
      if (!had_one) entry.origin_ms = origin_of(place.item);
      if (had_one && is_there(owner->second.node) && !began_anew(owner->second.node)) {
        PlannedCamera former = *owner->second.entry;
        former.hand_to = place.node;
        next_[owner->second.node].cameras[place.item] = std::move(former);
        ++handovers_;
      }
    }
    // Of another owner nobody has computed anything yet.
    if (!had_one || entry.fence != owner->second.entry->fence) {
      set_former(entry, {});
      begun_.insert(place.item);
    }
    next_[place.node].cameras[place.item] = entry;
    current_[place.item] = place.node;
  }

  /// Where a camera's windows are answered, and its patches encoded.
  struct Devices {
    std::string vision;
    std::string stream;
  };

  /// The windows of each camera that has an owner; its patches and explanations beside them, if that node
  /// does those too.
  void place_streams() {
    std::map<std::string, Devices> before;
    std::size_t evening_out = 0;
    for (const auto& [camera, node] : current_) {
      PlannedCamera& entry = next_.at(node).cameras.at(camera);
      keep_former(node, entry);
      before[camera] = {entry.vision, entry.stream};
      const Devices former = former_of(entry);
      // Where only the tower moves, no window has to fill.
      if (!former.stream.empty() && former.stream != entry.stream && !is_draining(former.stream))
        ++evening_out;
    }
    // One that drains has little time, and is rid of all that others have room for.
    const std::size_t most = options_.most_moves - std::min(options_.most_moves, evening_out);
    const auto stream = placed_streams(most);
    for (auto& [camera, node] : current_) {
      PlannedCamera& entry = next_.at(node).cameras.at(camera);
      const auto found = stream.find(camera);
      if (found == stream.end()) {
        // Nobody else has room: whoever answered before goes on, but with what is refused.
        const bool goes_on = entry.rung != kRefused && entry.former_stream != entry.stream;
        if (goes_on && !entry.former_stream.empty()) unplaced_.erase(camera);
        entry.stream = goes_on ? entry.former_stream : "";
        set_former(entry, {});
        before.at(camera).stream = entry.stream;
        continue;
      }
      if (found->second.node != entry.stream) entry.why_stream = found->second.why;
      entry.stream = found->second.node;
    }
    // One tower encodes a camera for one stream: while it does so for the former, another one does for the
    // next.
    const auto busy = [&](const std::string& camera, const std::string& node, const PlannedCamera& entry) {
      const Devices& was = before.at(camera);
      const Devices former =
          entry.stream != was.stream && begins_move(camera, node, entry, was) ? was : former_of(entry);
      return former.stream != entry.stream && former.vision != former.stream ? former.vision : std::string();
    };
    beside("vision", NodeRole::vision, &PlannedCamera::vision, &StreamAdmission::Load::vision,
           &PlannedCamera::why_vision, busy);
    beside("generate", NodeRole::generate, &PlannedCamera::generate, &StreamAdmission::Load::stream, nullptr);
    for (const auto& [camera, node] : current_)
      leave_former(camera, node, next_.at(node).cameras.at(camera), before.at(camera));
  }

  /// Whether whoever computed for a camera of that node can go on.
  bool can_answer(const std::string& owner, const Devices& devices) const {
    return !devices.stream.empty() && !devices.vision.empty() && !is_away(devices.stream) &&
           !is_away(devices.vision) && !reach_.is_apart(devices.stream) &&
           !reach_.is_cut(owner, devices.stream) && !reach_.is_cut(owner, devices.vision) &&
           !reach_.is_cut(devices.vision, devices.stream);
  }

  static Devices former_of(const PlannedCamera& entry) {
    return {former_vision_of(entry), entry.former_stream};
  }

  static void set_former(PlannedCamera& entry, const Devices& former) {
    entry.former_stream = former.stream;
    entry.former_vision = former.vision == former.stream ? "" : former.vision;
  }

  /// A former stream is kept while it is there and needed.
  void keep_former(const std::string& node, PlannedCamera& entry) const {
    const auto filled = input_.filled.find(node);
    const bool is_needed = filled != input_.filled.end() && !filled->second.contains(entry.stream_fence);
    if (!is_needed || !can_answer(node, former_of(entry))) set_former(entry, {});
  }

  /// Whether who has computed a camera that has another place now can do so until it is at home there. Of two
  /// formers, the first one's windows are full.
  bool begins_move(const std::string& camera, const std::string& node, const PlannedCamera& entry,
                   const Devices& before) const {
    return entry.former_stream.empty() && !begun_.contains(camera) && can_answer(node, before) &&
           input_.filled.contains(node);
  }

  /// Of a camera that has another place now: who was there answers until its windows are full there, or,
  /// where only its tower is another, encodes until that one does.
  void leave_former(const std::string& camera, const std::string& node, PlannedCamera& entry,
                    const Devices& before) {
    if (entry.stream != before.stream || entry.vision != before.vision) {
      if (begins_move(camera, node, entry, before)) set_former(entry, before);
      // What is said of a move before this one does not count.
      if (!entry.former_stream.empty()) entry.stream_fence = ++fence_;
    }
    // One tower encodes a camera for one stream.
    if (entry.stream.empty() || entry.vision.empty() || entry.vision == former_of(entry).vision)
      set_former(entry, {});
    if (!entry.former_stream.empty()) formers_.insert(camera);
  }

  struct Found {
    std::string node;
    std::string why;
  };

  /// Where the streams are of which there is something. What fits all nodes together may fit none of them: of
  /// that much less the fleet has room for.
  std::map<std::string, Found> placed_streams(std::size_t most_moves) {
    constexpr int kRounds = 6;
    /// Of what finds no place, what the streams are to be less: a rung often is a half, and one that is too
    /// many is another camera that is lowered for nothing. At least so much of the capacity, and more with
    /// each round, or a city would come to rest in many.
    constexpr double kLess = 0.25, kLeastLess = 0.002;
    const Rooms rooms = nodes_with(input_.nodes, {NodeRole::stream}, &NodeRecord::streams);
    const std::optional<double> capacity = taken_capacity(rooms);
    // Null: nobody has it.
    std::vector<PlannedCamera*> entries;
    std::vector<const std::string*> owners;
    for (const WantedCamera& camera : input_.cameras) {
      const auto node = current_.find(camera.name);
      owners.push_back(node == current_.end() ? nullptr : &node->second);
      entries.push_back(node == current_.end() ? nullptr : &next_.at(node->second).cameras.at(camera.name));
    }
    double room = capacity.value_or(0);
    for (int round = 1;; ++round) {
      if (capacity) {
        for (const auto& [camera, why] : streams_.refusals()) unplaced_.erase(camera);
        streams_.admit(entries, room, input_.wall);
        for (const auto& [camera, why] : streams_.refusals()) unplaced_[camera] = why;
      }
      std::vector<PlacementItem> items;
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (entries[i] != nullptr && entries[i]->rung != kRefused)
          items.push_back({input_.cameras[i].name, streams_.load(i).stream, entries[i]->stream,
                           reach_.bars_for(NodeRole::stream, *owners[i])});
      std::map<std::string, Found> found = place_on("stream", rooms, items, most_moves);
      double load = 0, without = 0;
      for (const PlacementItem& item : items) {
        load += item.load;
        if (!found.contains(item.name)) without += item.load;
      }
      double less = 0;
      if (without > 0 && capacity && !std::isinf(*capacity))
        less = std::max(kLess * without, round * kLeastLess * *capacity);
      less = std::max(less, load * beyond_towers(found));
      if (less == 0 || round == kRounds) return found;
      for (const PlacementItem& item : items) unplaced_.erase(item.name);
      room = std::max(0.0, std::min(room, load) - less);
    }
  }

  /// By what part what towers do, and what their nodes do for streams of their own, is more than they have
  /// room for; 0: it is not, or there is no tower.
  double beyond_towers(const std::map<std::string, Found>& streams) const {
    constexpr double kNothing = 1e-9;
    // Mostly each does its own, and a city has many cameras.
    if (std::ranges::none_of(input_.nodes, [](const auto& node) {
          return node.second.roles.contains(NodeRole::stream) &&
                 !node.second.roles.contains(NodeRole::vision);
        }))
      return 0;
    const Rooms towers = nodes_with(input_.nodes, {NodeRole::vision}, &NodeRecord::streams);
    const std::optional<double> capacity = taken_capacity(towers);
    if (!capacity || std::isinf(*capacity)) return 0;
    std::map<std::string, double> left;
    for (const PlacementNode& tower : towers)
      if (tower.state == PlacementNodeState::in) left[tower.name] = tower.capacity;
    double apart = 0, own = 0;
    for (std::size_t i = 0; i < input_.cameras.size(); ++i) {
      const auto stream = streams.find(input_.cameras[i].name);
      if (stream == streams.end()) continue;
      if (const auto tower = left.find(stream->second.node); tower != left.end()) {
        own += streams_.load(i).stream;
        tower->second = std::max(0.0, tower->second - streams_.load(i).stream);
      } else if (!input_.nodes.at(stream->second.node).roles.contains(NodeRole::vision)) {
        apart += streams_.load(i).vision;
      }
    }
    double room = 0;
    for (const auto& [tower, rest] : left) room += rest;
    return apart > room + kNothing ? (apart - room) / (apart + own) : 0;
  }

  std::map<std::string, Found> place_on(const std::string& role, const Rooms& rooms,
                                        const std::vector<PlacementItem>& items, std::size_t most_moves) {
    const Placement placed =
        place(rooms, items, {.role = role, .slack = options_.slack, .most_moves = most_moves});
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

  using Busy = std::function<std::string(const std::string& camera, const std::string& node,
                                         const PlannedCamera& entry)>;

  /// What the streams' nodes do themselves, if they have the role; of the other cameras, what others do in
  /// the room that their own streams leave them. `busy`: who is not to do it for that camera now, as long as
  /// somebody else has room; empty: nobody.
  void beside(const std::string& role, NodeRole needed, std::string PlannedCamera::*field,
              double StreamAdmission::Load::*load, std::string PlannedCamera::*reason,
              const Busy& busy = {}) {
    const auto does = [&](const std::string& node) {
      const auto found = input_.nodes.find(node);
      return found != input_.nodes.end() && found->second.roles.contains(needed);
    };
    std::vector<PlacementItem> apart;
    /// Bars, with who is busy among those that are closed.
    std::map<std::pair<const PlacementBars*, std::string>, PlacementBars> without_busy;
    std::map<std::string, double> taken;
    for (std::size_t i = 0; i < input_.cameras.size(); ++i) {
      const WantedCamera& camera = input_.cameras[i];
      const auto node = current_.find(camera.name);
      if (node == current_.end()) continue;
      PlannedCamera& entry = next_.at(node->second).cameras.at(camera.name);
      taken[entry.stream] += streams_.load(i).stream;
      if (!entry.stream.empty() && !does(entry.stream)) {
        const bool is_owners = needed == NodeRole::vision;
        apart.push_back({camera.name, streams_.load(i).*load, entry.*field,
                         reach_.bars_for(needed, entry.stream, is_owners ? node->second : "")});
        if (const std::string who = busy ? busy(camera.name, node->second, entry) : ""; !who.empty()) {
          const PlacementBars* const all = apart.back().bars;
          PlacementBars& bars =
              without_busy.try_emplace({all, who}, all == nullptr ? PlacementBars() : *all).first->second;
          bars.closed.insert(who);
          apart.back().bars = &bars;
        }
        continue;
      }
      entry.*field = entry.stream;
      if (reason != nullptr) (entry.*reason).clear();
    }
    if (apart.empty()) return;
    Rooms rooms = nodes_with(input_.nodes, {needed}, &NodeRecord::streams);
    for (PlacementNode& room : rooms) room.capacity = std::max(0.0, room.capacity - taken[room.name]);
    const auto unplaced = unplaced_;
    const auto found = place_on(role, rooms, apart, options_.most_moves);
    // Explanations come from the stream's node then.
    if (needed == NodeRole::generate) unplaced_ = unplaced;
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
    /// The highest that what is written then remembers.
    Fence remembered = 0;
    for (const auto& [node, plan] : next_) {
      const auto before = input_.plan.find(node);
      // Of one that is away it is the run before that had it; there is a plan of that.
      const std::string& incarnation =
          is_away(node) ? before->second.incarnation : input_.nodes.at(node).incarnation;
      if (before != input_.plan.end() && before->second.cameras == plan.cameras &&
          before->second.incarnation == incarnation) {
        remembered = std::max(remembered, before->second.fence);
        continue;
      }
      const bool loses = before != input_.plan.end() &&
                         std::ranges::any_of(before->second.cameras, [&now = plan.cameras](const auto& each) {
                           return !now.contains(each.first);
                         });
      NodePlan written = plan;
      written.fence = remembered = fence_;
      written.incarnation = incarnation;
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
  Reachability reach_;
  bool is_set_back_ = false;
  std::map<std::string, Owner> owners_;
  std::set<std::string> wanted_;
  std::map<std::string, NodePlan> next_;
  /// The new owner of each camera.
  std::map<std::string, std::string> current_;
  std::map<std::string, std::string> unplaced_;
  StreamAdmission streams_;
  std::size_t handovers_ = 0;
  /// Cameras that have another fence than before.
  std::set<std::string> begun_;
  /// Cameras whose streams have a former.
  std::set<std::string> formers_;
};

}  // namespace

Planning plan_fleet(const PlanningInput& input, const PlannerOptions& options) {
  return Desk(input, options).run();
}

}  // namespace vigil::cluster
