#include "services/state_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/process/process.h"
#include "services/asked_actor.h"

namespace vigil::services {
namespace {

// Whoever asks within this time gets the same page, however many they are.
constexpr auto kPageAge = std::chrono::milliseconds(250);

/// Each server keeps to an eighth of the process's descriptors: cameras, alerts and their readers need the
/// rest.
cluster::HttpLimits limits() {
  cluster::HttpLimits result;
  const std::uint64_t share = cluster::raise_descriptor_limit() / 8;
  result.connections = std::min<std::size_t>(result.connections, std::max<std::uint64_t>(share, 16));
  result.per_address = std::min(result.per_address, result.connections / 2);
  return result;
}

actors::ProcessFigures figures_of_process() {
  static const double start = cluster::process_start_seconds();
  const cluster::ProcessMemory memory = cluster::process_memory();
  const cluster::Descriptors descriptors = cluster::process_descriptors();
  return {.cpu_seconds = cluster::process_cpu_seconds(),
          .resident_bytes = memory.resident_bytes,
          .virtual_bytes = memory.virtual_bytes,
          .open_fds = descriptors.open,
          .max_fds = descriptors.most,
          .start_seconds = start};
}

/// The status actor, as threads that are no actors ask it. Thread-safe.
class Asked {
 public:
  Asked(caf::actor_system& system, actors::status_actor status, StatusPatience patience)
      : system_(system), status_(std::move(status)), patience_(patience) {}

  std::optional<actors::StatusReport> probe() const { return ask(actors::probe_atom_v, patience_.probe); }
  std::optional<actors::StatusReport> page() const { return ask(actors::status_atom_v, patience_.page); }

 private:
  /// Nothing if it is gone, or takes too long.
  template <class Atom>
  std::optional<actors::StatusReport> ask(Atom what, base::Duration patience) const {
    return ask_actor<actors::StatusReport>(system_, status_, patience, what);
  }

  caf::actor_system& system_;
  actors::status_actor status_;
  StatusPatience patience_;
};

std::vector<cluster::HttpRoute> probes(const Asked& asked) {
  const auto probe = [&asked](const char* path, bool actors::StatusReport::*good) {
    return cluster::HttpRoute{.path = path,
                              .handler =
                                  [asked, good](const cluster::HttpRequest&) {
                                    const auto report = asked.probe();
                                    return report && (*report).*good
                                               ? cluster::HttpResponse{.body = "ok\n"}
                                               : cluster::HttpResponse{.status = 503, .body = "no\n"};
                                  },
                              .quick = true};
  };
  return {probe("/healthz", &actors::StatusReport::live), probe("/readyz", &actors::StatusReport::ready),
          probe("/startupz", &actors::StatusReport::started)};
}

std::vector<cluster::HttpRoute> pages(actors::Metrics& metrics, const Asked& asked) {
  std::vector<cluster::HttpRoute> routes = probes(asked);
  routes.push_back({.path = "/metrics",
                    .handler =
                        [&metrics](const cluster::HttpRequest&) {
                          metrics.process(figures_of_process());
                          return cluster::HttpResponse{
                              .content_type = "text/plain; version=0.0.4; charset=utf-8",
                              .body = metrics.text()};
                        },
                    .shared_for = kPageAge});
  routes.push_back({.path = "/status",
                    .handler =
                        [asked](const cluster::HttpRequest&) {
                          auto report = asked.page();
                          if (!report)
                            return cluster::HttpResponse{.status = 503,
                                                         .body = "no status: who tells it does not answer\n"};
                          return cluster::HttpResponse{.content_type = "application/json",
                                                       .body = std::move(report->page)};
                        },
                    .shared_for = kPageAge});
  return routes;
}

}  // namespace

StateServer::StateServer(const config::MetricsSettings& settings, actors::Metrics& metrics,
                         caf::actor_system& system, const actors::status_actor& status,
                         const base::Clock& clock, const std::function<void(const std::string&)>& log,
                         StatusPatience patience, std::vector<cluster::HttpRoute> more) {
  const Asked asked(system, status, patience);
  if (!settings.listen.empty()) {
    std::vector<cluster::HttpRoute> routes = pages(metrics, asked);
    routes.insert(routes.end(), std::move_iterator(more.begin()), std::move_iterator(more.end()));
    cluster::HttpServer::Options options{.listen = settings.listen,
                                         .routes = std::move(routes),
                                         .limits = limits(),
                                         .log = log,
                                         .clock = &clock};
    if (!settings.tls.cert_file.empty()) options.tls = {settings.tls.cert_file, settings.tls.key_file};
    url_ = (options.tls ? "https://" : "http://") + settings.listen + "/metrics";
    main_ = std::make_unique<cluster::HttpServer>(std::move(options));
  }
  if (!settings.probes.empty())
    probes_ = std::make_unique<cluster::HttpServer>(cluster::HttpServer::Options{
        .listen = settings.probes, .routes = probes(asked), .limits = limits(), .log = log, .clock = &clock});
}

}  // namespace vigil::services
