// How a node reaches others, and hears from them: by sockets.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <caf/send.hpp>
#include <spdlog/logger.h>

#include "cluster/bulk/bulk.h"
#include "cluster/peers/peer_system.h"
#include "config/settings.h"
#include "fleet/node/node_actor.h"

namespace vigil::services {

/// Tells the node what its port hears, once there is one.
class PortOwner final : public cluster::BulkOwner {
 public:
  /// The logger outlives it.
  explicit PortOwner(spdlog::logger& logger) : logger_(logger) {}
  void set(fleet::node_actor node) {
    const std::lock_guard lock(mutex_);
    node_ = std::move(node);
  }
  void received(const std::string& peer, cluster::BulkReceived received) override {
    tell(std::make_shared<fleet::BulkArrival>(fleet::BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell(fleet::BulkNews{peer, fleet::BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction,
              std::uint64_t /*incarnation*/) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::opened, direction});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::ended, reset.direction,
                         std::string(cluster::name_of(reset.why))});
  }
  void trouble(const std::string& line) override { logger_.warn("bulk port: {}", line); }

 private:
  template <class Message>
  void tell(Message message) {
    const std::lock_guard lock(mutex_);
    if (node_) caf::anon_send(node_, std::move(message));
  }

  spdlog::logger& logger_;
  std::mutex mutex_;
  fleet::node_actor node_;
};

/// All have to outlive it.
fleet::NodeWays ways_of(cluster::PeerSystem& peers, cluster::PeerSockets& sockets, cluster::BulkPort& bulk);

std::vector<cluster::PeerAddress> seeds_of(const config::ClusterSettings& cluster);

}  // namespace vigil::services
