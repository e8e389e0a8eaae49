// What a node tells of its whole fleet over HTTP.
#pragma once

#include <chrono>
#include <mutex>
#include <vector>

#include <caf/actor_system.hpp>

#include "base/duration.h"
#include "cluster/http/http.h"
#include "fleet/messages/messages.h"

namespace vigil::services {

/// GET /fleet, answered by the fleet status actor, and /evidence/NAME, by the fetcher; 503 while there is
/// none, or when it does not answer. Thread-safe. Has to outlive the server of its routes.
class FleetRoutes {
 public:
  /// The actor asks the registry, and then nodes.
  explicit FleetRoutes(caf::actor_system& system, base::Duration patience = std::chrono::seconds(8))
      : system_(system), patience_(patience) {}

  void set(fleet::fleet_status_actor status, fleet::fetcher_actor fetcher);
  std::vector<cluster::HttpRoute> routes();

 private:
  cluster::HttpResponse tell_fleet(const cluster::HttpRequest& request);
  cluster::HttpResponse tell_evidence(const cluster::HttpRequest& request);

  caf::actor_system& system_;
  const base::Duration patience_;
  std::mutex mutex_;
  fleet::fleet_status_actor status_;
  fleet::fetcher_actor fetcher_;
};

}  // namespace vigil::services
