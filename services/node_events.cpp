#include "services/node_events.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <system_error>
#include <utility>

namespace vigil::services {
namespace {

std::filesystem::path made_folder(const std::filesystem::path& outbox, bool beside_gateway) {
  return beside_gateway ? std::filesystem::path(outbox.string() + "-made") : outbox;
}

/// Of a time of day in milliseconds.
constexpr std::size_t kTokenDigits = 20;

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
      evidence_(settings.evidence, ages_, logger) {}

KeptEvents::KeptEvents(const config::Settings& settings, const base::Clock& clock, actors::Metrics& metrics,
                       actors::StatusBoard& board, spdlog::logger& logger)
    : settings_(settings.alerts),
      clock_(clock),
      metrics_(metrics),
      board_(board),
      logger_(logger),
      ages_(clock),
      topics_(metrics) {}

std::unique_ptr<actors::Outbox> KeptEvents::open(bool anew) {
  const std::filesystem::path folder = settings_.outbox;
  if (anew) {
    const std::filesystem::path aside(folder.string() + ".replaced");
    std::error_code error;
    std::filesystem::remove_all(aside, error);
    std::filesystem::rename(folder, aside, error);
    if (error) throw actors::OutboxError(folder.string() + ": cannot be set aside: " + error.message());
  }
  return actors::open_rocksdb_outbox(folder, ages_);
}

std::string KeptEvents::token(const std::string& after) {
  // By the time of day, so that it comes behind those of runs before this one, too.
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.wall().time_since_epoch());
  tokens_ = std::max(tokens_ + 1, static_cast<std::uint64_t>(std::max<std::int64_t>(0, now.count())));
  std::uint64_t before = 0;
  std::from_chars(after.data(), after.data() + std::min(after.size(), kTokenDigits), before);
  tokens_ = std::max(tokens_, before + 1);
  std::string number = std::to_string(tokens_);
  return std::string(kTokenDigits - std::min(kTokenDigits, number.size()), '0') + number + random_name();
}

fleet::GatewayDeps KeptEvents::deps(const std::string& node, bool is_alone) {
  return {.node = node,
          .open = [this](bool anew) { return open(anew); },
          .topics = [this](const actors::Outbox& outbox) { return topics_.open(settings_, outbox, logger_); },
          .token = [this](const std::string& after) { return token(after); },
          .retention = settings_.retention,
          .clock = clock_,
          .metrics = metrics_,
          .board = board_,
          .logger = logger_,
          .is_alone = is_alone};
}

}  // namespace vigil::services
