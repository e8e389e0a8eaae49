#include "services/node_events.h"

#include <random>

namespace vigil::services {
namespace {

std::filesystem::path made_folder(const std::filesystem::path& outbox, bool beside_gateway) {
  return beside_gateway ? std::filesystem::path(outbox.string() + "-made") : outbox;
}

}  // namespace

std::string random_name() {
  std::random_device random;
  std::string name;
  for (int i = 0; i < 16; ++i) name += "0123456789abcdef"[random() % 16];
  return name;
}

MadeEvents::MadeEvents(const config::Settings& settings, bool beside_gateway, const base::Clock& clock,
                       actors::Metrics& metrics, spdlog::logger& logger)
    : ages_(clock),
      outbox_(actors::make_fallback_outbox(
          {.open =
               [this, folder = made_folder(settings.alerts.outbox, beside_gateway)] {
                 return actors::open_rocksdb_outbox(folder, ages_);
               },
           .given_numbers = true},
          ages_, clock, metrics, logger)),
      evidence_(settings.evidence, settings.memory.enabled, ages_, logger) {}

KeptEvents::KeptEvents(const config::Settings& settings, const base::Clock& clock, actors::Metrics& metrics,
                       actors::StatusBoard& board, spdlog::logger& logger)
    : settings_(settings.alerts),
      clock_(clock),
      metrics_(metrics),
      board_(board),
      logger_(logger),
      ages_(clock),
      folder_(settings.alerts.outbox, ages_),
      tokens_(clock, random_name),
      topics_(metrics) {}

fleet::GatewayDeps KeptEvents::deps(const std::string& node, bool is_alone) {
  return {.node = node,
          .open = [this](bool anew) { return folder_.open(anew); },
          .topics = [this](const actors::Outbox& outbox) { return topics_.open(settings_, outbox, logger_); },
          .token = [this](const std::string& after) { return tokens_.next(after); },
          .retention = settings_.retention,
          .clock = clock_,
          .metrics = metrics_,
          .board = board_,
          .logger = logger_,
          .is_alone = is_alone};
}

}  // namespace vigil::services
