// How a node reaches others, and hears from them: by sockets.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include <caf/send.hpp>

#include "cluster/bulk/bulk.h"
#include "cluster/peers/peer_system.h"
#include "config/settings.h"
#include "fleet/node/node_actor.h"

namespace vigil::services {

/// Tells the node what its port hears, once there is one.
class PortOwner final : public cluster::BulkOwner {
 public:
  void set(fleet::node_actor node) {
    const std::lock_guard lock(mutex_);
    node_ = std::move(node);
  }
  void received(const std::string& peer, cluster::BulkReceived received) override {
    tell(std::make_shared<fleet::BulkArrival>(fleet::BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell(fleet::BulkNews{peer, fleet::BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction, std::uint64_t incarnation) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::opened, direction, incarnation});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell(fleet::BulkNews{peer, fleet::BulkNews::What::ended, reset.direction, 0,
                         std::string(cluster::name_of(reset.why))});
  }

 private:
  template <class Message>
  void tell(Message message) {
    const std::lock_guard lock(mutex_);
    if (node_) caf::anon_send(node_, std::move(message));
  }

  std::mutex mutex_;
  fleet::node_actor node_;
};

/// All have to outlive it.
fleet::NodeWays ways_of(cluster::PeerSystem& peers, cluster::PeerSockets& sockets, cluster::BulkPort& bulk);

/// Throws std::runtime_error for what is no HOST:PORT: one line.
cluster::PeerAddress address_of(const std::string& text);
std::vector<cluster::PeerAddress> seeds_of(const config::ClusterSettings& cluster);

}  // namespace vigil::services
