// What a running process tells over HTTP: metrics, its state, and whether it lives.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "cluster/http.h"
#include "config/settings.h"

namespace vigil::services {

/// /metrics, /status and the probes (/healthz, /readyz, /startupz) at `listen`, and the probes alone at
/// `probes`, each on a thread of its own, as the settings say. Probes tell a status and nothing else, and
/// wait for nobody.
class StateServer {
 public:
  /// All that is referred to has to outlive it. Throws cluster::HttpError.
  StateServer(const config::MetricsSettings& settings, actors::Metrics& metrics,
              const actors::StatusBoard& board, const base::Clock& clock,
              const std::function<void(const std::string&)>& log);

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
