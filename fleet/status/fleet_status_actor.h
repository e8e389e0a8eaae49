// Shows the fleet to people, when they ask: gathers what the registry and the nodes tell.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <caf/typed_response_promise.hpp>
#include <spdlog/logger.h>

#include "base/clock.h"
#include "cluster/membership/fleet_keys.h"
#include "cluster/registry/registry.h"
#include "fleet/messages/messages.h"
#include "fleet/status/fleet_picture.h"
#include "fleet/status/known_plans.h"

namespace vigil::fleet {

struct FleetStatusDeps {
  std::string fleet;
  node_actor node;
  /// Both have to outlive it, and the registry what it is asked.
  cluster::Registry& registry;
  const base::Clock& clock;
  spdlog::logger& logger;
  /// The registry, and then each node, may take so long.
  base::Duration patience{2000};
  /// Who asks the same again within this time is told the same.
  base::Duration cache{1000};
};

struct fleet_status_state {
  using Promise = caf::typed_response_promise<FleetReplyPtr>;

  explicit fleet_status_state(fleet_status_actor::pointer self_pointer) : self(self_pointer) {}

  void ask(const FleetQuery& query, Promise promise);
  void read_plans(const FleetQuery& query);
  void plans_came(const cluster::RegistryResult<cluster::RegistryRange>& result);
  /// Waits for the registry no longer, if it still does.
  void go_on(const FleetQuery& query, std::uint64_t reader, const std::string& fault);
  void ask_nodes(const FleetQuery& query);
  void answered(const FleetQuery& query, const std::string& node, std::optional<NodeAnswer> answer,
                const std::string& fault);
  void compose(const FleetQuery& query);
  void fail(const FleetQuery& query, const std::string& reason);
  bool is_fresh(base::Clock::TimePoint at) const;
  void end();

  fleet_status_actor::pointer self;
  std::optional<FleetStatusDeps> deps;
  std::optional<cluster::FleetKeys> keys;
  KnownPlans plans;
  bool is_reading = false;
  /// Questions that wait for the plans, each by a number of its own.
  std::map<FleetQuery, std::uint64_t> readers;
  std::uint64_t last_reader = 0;
  /// What is being found out.
  struct Asked {
    std::vector<Promise> waiting;
    NodeStandingPtr standing;
    std::string registry_fault;
    FleetPage page;
    std::size_t nodes_left = 0;
    std::map<std::string, FleetPicture::Node> nodes;
  };
  std::map<FleetQuery, Asked> asked;
  /// What was told a moment ago.
  std::map<FleetQuery, std::pair<FleetReplyPtr, base::Clock::TimePoint>> told;
  /// When nodes last answered, by name and incarnation.
  std::map<std::pair<std::string, std::string>, base::Clock::TimePoint> heard;
  static inline const char* name = "fleet_status";
};

/// Quits with its node.
fleet_status_actor::behavior_type fleet_status(fleet_status_actor::stateful_pointer<fleet_status_state> self,
                                               FleetStatusDeps deps);

}  // namespace vigil::fleet
