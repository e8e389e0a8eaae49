#include "services/state_server.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

#include "cluster/process.h"

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

std::vector<cluster::HttpRoute> probes(const actors::StatusBoard& board) {
  const auto probe = [&board](const char* path, bool (actors::StatusBoard::*good)() const) {
    return cluster::HttpRoute{.path = path,
                              .handler =
                                  [&board, good](const cluster::HttpRequest&) {
                                    return (board.*good)()
                                               ? cluster::HttpResponse{.body = "ok\n"}
                                               : cluster::HttpResponse{.status = 503, .body = "no\n"};
                                  },
                              .quick = true};
  };
  return {probe("/healthz", &actors::StatusBoard::live), probe("/readyz", &actors::StatusBoard::ready),
          probe("/startupz", &actors::StatusBoard::started)};
}

std::vector<cluster::HttpRoute> pages(actors::Metrics& metrics, const actors::StatusBoard& board) {
  std::vector<cluster::HttpRoute> routes = probes(board);
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
                        [&metrics, &board](const cluster::HttpRequest&) {
                          return cluster::HttpResponse{.content_type = "application/json",
                                                       .body = board.json(metrics)};
                        },
                    .shared_for = kPageAge});
  return routes;
}

}  // namespace

StateServer::StateServer(const config::MetricsSettings& settings, actors::Metrics& metrics,
                         const actors::StatusBoard& board, const base::Clock& clock,
                         const std::function<void(const std::string&)>& log) {
  if (!settings.listen.empty()) {
    cluster::HttpServer::Options options{.listen = settings.listen,
                                         .routes = pages(metrics, board),
                                         .limits = limits(),
                                         .log = log,
                                         .clock = &clock};
    if (!settings.tls.cert_file.empty()) options.tls = {settings.tls.cert_file, settings.tls.key_file};
    url_ = (options.tls ? "https://" : "http://") + settings.listen + "/metrics";
    main_ = std::make_unique<cluster::HttpServer>(std::move(options));
  }
  if (!settings.probes.empty())
    probes_ = std::make_unique<cluster::HttpServer>(cluster::HttpServer::Options{
        .listen = settings.probes, .routes = probes(board), .limits = limits(), .log = log, .clock = &clock});
}

}  // namespace vigil::services
