#include "services/node_ways.h"

#include <utility>
#include <variant>

#include "services/node_need.h"

namespace vigil::services {

fleet::NodeWays ways_of(cluster::PeerSystem& peers, cluster::PeerSockets& sockets, cluster::BulkPort& bulk) {
  return {.find =
              [&peers](const cluster::PeerAddress& address, auto done) {
                peers.find(address, [done = std::move(done)](auto found) {
                  if (auto* reason = std::get_if<std::string>(&found)) return done(std::move(*reason));
                  done(caf::actor_cast<fleet::greeter_actor>(std::get<caf::strong_actor_ptr>(found)));
                });
              },
          .resolve = [&sockets](const cluster::PeerAddress& address,
                                auto done) { sockets.resolve(address, std::move(done)); },
          .bulk = &bulk};
}

std::vector<cluster::PeerAddress> seeds_of(const config::ClusterSettings& cluster) {
  std::vector<cluster::PeerAddress> seeds;
  seeds.reserve(cluster.seeds.size());
  for (const std::string& seed : cluster.seeds) seeds.push_back(address_of(seed));
  return seeds;
}

}  // namespace vigil::services
