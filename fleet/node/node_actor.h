// The shell around `FleetMember`, `PlanKeeper` and `NodeDesk`.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "actors/messages/spawn.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "cluster/bulk/bulk.h"
#include "cluster/membership/fleet_member.h"
#include "cluster/membership/plan_keeper.h"
#include "config/settings.h"
#include "fleet/messages.h"
#include "fleet/node/actor_loop.h"
#include "fleet/node/node_desk.h"

namespace vigil::fleet {

/// How a node reaches others; sockets, or a simulation's. What is called back runs on any thread. Outlives
/// the node.
struct NodeWays {
  /// The actor that a node has published, or why there is none.
  std::function<void(const cluster::PeerAddress&,
                     std::function<void(std::variant<greeter_actor, std::string>)>)>
      find;
  /// The addresses that a name stands for, in numbers; none if it is not known.
  std::function<void(const cluster::PeerAddress&, std::function<void(std::vector<cluster::PeerAddress>)>)>
      resolve;
  cluster::BulkPort* bulk = nullptr;
};

struct NodeDeps {
  std::string fleet;
  cluster::NodeRecord record;
  base::Duration lease{5000};
  /// Nodes that are asked first whether this one fits; a name may stand for many.
  std::vector<cluster::PeerAddress> seeds = {};
  cluster::Registry& registry;
  NodeWays ways;
  /// By the configuration.
  std::vector<config::CameraSettings> cameras;
  /// Null where this node reads no cameras, or computes nothing.
  actors::supervisor_actor supervisor;
  dock_actor dock;
  /// Of a group of the vision tower, in pixels.
  int group = 28;
  const base::Clock& clock;
  actors::Metrics& metrics;
  actors::StatusBoard& board;
  spdlog::logger& logger;
  /// It cannot go on as a member, and why; called once.
  std::function<void(const std::string&)> expelled = {};
};

struct node_state {
  explicit node_state(node_actor::pointer self_pointer) : self(self_pointer) {}

  void start();
  /// One seed, by name, then by each of its addresses; `heard` is done for each.
  void ask_seed(const cluster::PeerAddress& seed);
  void heard_seed(const cluster::PeerAddress& seed, const std::string& refusal);
  void join();
  cluster::Greeting greeting() const;
  std::string why_not(const std::string& text, base::Duration way) const;
  std::string answer(const std::string& text);
  void greet(const cluster::NodeRecord& node);
  void greeted(const cluster::NodeRecord& node, const greeter_actor& greeter, base::Clock::TimePoint sent,
               const std::string& text);
  void failed(const cluster::NodeRecord& node, const std::string& reason);
  void meet(const std::string& node, greeter_actor greeter);
  /// If it is one that this node knows: the connection to it ended.
  void part_from(const caf::actor_addr& greeter);
  void members_changed();
  /// It cannot go on as a member.
  void expel(const std::string& why);
  void plan_changed();
  void list_bulk_peers();
  void link_up();
  void make_link(const std::string& node, const dock_actor& there);
  void hear(const BulkNews& news);
  void settle();
  void tick();
  void drain();
  void stop();

  node_actor::pointer self;
  std::optional<NodeDeps> deps;
  std::optional<NodeDesk> desk;
  std::unique_ptr<ActorLoop> loop;
  std::optional<cluster::FleetMember> member;
  std::optional<cluster::PlanKeeper> plan;
  actors::Stages stages;
  bool has_stages = false;
  /// By node.
  std::map<std::string, greeter_actor> greeters;
  std::map<std::string, link_actor> links;
  /// Whose dock was asked for and has not answered.
  std::set<std::string> linking;
  /// Bulk ways that stand.
  std::set<std::string> open_ways;
  /// Endpoints of bulk ports, by node and incarnation.
  std::map<std::pair<std::string, std::string>, std::string> endpoints;
  /// Where each camera's patches go, as of the last plan.
  std::map<std::string, std::string> devices;
  std::map<std::string, const config::CameraSettings*> cameras;
  /// Cameras of the plan that the configuration does not have, and that was said.
  std::set<std::string> unknown;
  std::vector<caf::typed_response_promise<bool>> draining;
  /// Seeds that have not answered.
  std::size_t seeds_left = 0;
  bool was_expelled = false;
  bool is_stopping = false;
  static inline const char* name = "node";
};

node_actor::behavior_type node(node_actor::stateful_pointer<node_state> self, NodeDeps deps);

}  // namespace vigil::fleet
