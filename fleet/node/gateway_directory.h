// The fleet's gateways, as a node knows them: from the registry who they are, from each node where it is.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <caf/actor_addr.hpp>

#include "cluster/membership/fleet_member.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

/// Not thread-safe.
class GatewayDirectory {
 public:
  /// Gateways of other nodes whose actor is to be asked for, of those that can be: each is `found` or
  /// `failed`.
  template <class CanAsk>
  std::vector<std::string> take_asks(const cluster::FleetMember& member, CanAsk can_ask) {
    std::vector<std::string> asks;
    for (const auto& [name, record] : member.nodes()) {
      if (!record.roles.contains(cluster::NodeRole::gateway) || name == member.record().name) continue;
      const auto way = ways_.find(name);
      if (way != ways_.end() && way->second.first == record.incarnation) continue;
      if (!can_ask(name) || !asked_.insert(name).second) continue;
      asks.push_back(name);
    }
    return asks;
  }
  void found(const std::string& node, const std::string& incarnation, gateway_actor gateway) {
    asked_.erase(node);
    if (gateway) ways_[node] = {incarnation, std::move(gateway)};
  }
  void failed(const std::string& node) { asked_.erase(node); }
  void lost(const caf::actor_addr& gateway) {
    std::erase_if(ways_, [&](const auto& way) { return way.second.second.address() == gateway; });
  }

  /// If there are any since the last call. `own`: this node's, or null.
  GatewayNewsPtr take_news(const cluster::FleetMember& member, const gateway_actor& own);

 private:
  /// With the incarnation of its node.
  std::map<std::string, std::pair<std::string, gateway_actor>> ways_;
  std::set<std::string> asked_;
  /// Nodes that had events of cameras which they do not have any more, with their incarnations.
  std::map<std::string, std::string> keepers_;
  GatewayNewsPtr told_;
};

}  // namespace vigil::fleet
