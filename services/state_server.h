// What a running process tells over HTTP: metrics, its state, and whether it lives.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>

#include "actors/messages/messages.h"
#include "actors/status/metrics.h"
#include "base/clock.h"
#include "base/duration.h"
#include "cluster/http/http.h"
#include "config/settings.h"

namespace vigil::services {

/// How long the status actor may take to answer. Whoever probes waits about a second.
struct StatusPatience {
  base::Duration probe = std::chrono::milliseconds(500);
  base::Duration page = std::chrono::seconds(3);
};

/// /metrics, /status and the probes (/healthz, /readyz, /startupz) at `listen`, and the probes alone at
/// `probes`, each on a thread of its own, as the settings say. Probes tell a status and nothing else, and
/// wait for nobody but the status actor, and for that not longer than their patience: 503 is what is told
/// when it is gone or does not answer.
class StateServer {
 public:
  /// `status` is asked for all but the metrics, in `system`; `more` are other pages at `listen`. All that is
  /// referred to has to outlive it. Throws cluster::HttpError.
  StateServer(const config::MetricsSettings& settings, actors::Metrics& metrics, caf::actor_system& system,
              const actors::status_actor& status, const base::Clock& clock,
              const std::function<void(const std::string&)>& log, StatusPatience patience = {},
              std::vector<cluster::HttpRoute> more = {});

  /// "http://HOST:PORT/metrics" for people; empty if there is none.
  const std::string& url() const { return url_; }
  /// Where they really listen; 0: there is none.
  int port() const { return main_ ? main_->port() : 0; }
  int probes_port() const { return probes_ ? probes_->port() : 0; }

 private:
  std::unique_ptr<cluster::HttpServer> main_;
  std::unique_ptr<cluster::HttpServer> probes_;
  std::string url_;
};

}  // namespace vigil::services
