// What a node of a fleet keeps its events in: those that it makes, on their way to gateways, and as a gateway
// those of all.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include <spdlog/logger.h>

#include "actors/alerts/fallback_outbox.h"
#include "actors/status/status_board.h"
#include "config/running/retention_clock.h"
#include "config/settings.h"
#include "fleet/events/gateway_actor.h"
#include "fleet/events/gateway_folder.h"
#include "fleet/events/gateway_tokens.h"
#include "fleet/events/shipping_publisher.h"
#include "services/service_parts.h"

namespace vigil::services {

/// Of a node that reads cameras. Its outbox is the configuration's, or, on a node that is a gateway, too, the
/// folder beside it that ends with "-made".
class MadeEvents {
 public:
  /// All have to outlive it. Throws for a folder that another process has.
  MadeEvents(const config::Settings& settings, bool beside_gateway, const base::Clock& clock,
             actors::Metrics& metrics, spdlog::logger& logger);

  actors::Outbox& outbox() { return *outbox_; }
  fleet::ShippingPublisher& publisher() { return publisher_; }
  const std::optional<actors::EvidenceParts>& evidence() const { return evidence_.parts(); }
  const actors::Clips* clips() const { return evidence_.clips(); }

 private:
  config::RetentionClock ages_;
  std::unique_ptr<actors::Outbox> outbox_;
  fleet::ShippingPublisher publisher_;
  EvidenceKeeping evidence_;
};

/// Of a gateway.
class KeptEvents {
 public:
  /// All have to outlive it.
  KeptEvents(const config::Settings& settings, const base::Clock& clock, actors::Metrics& metrics,
             actors::StatusBoard& board, spdlog::logger& logger);

  /// `is_alone`: this process does nothing else.
  fleet::GatewayDeps deps(const std::string& node, bool is_alone);

 private:
  const config::AlertSettings& settings_;
  const base::Clock& clock_;
  actors::Metrics& metrics_;
  actors::StatusBoard& board_;
  spdlog::logger& logger_;
  config::RetentionClock ages_;
  fleet::GatewayFolder folder_;
  fleet::GatewayTokens tokens_;
  Topics topics_;
};

/// 16 hexadecimal digits.
std::string random_name();

}  // namespace vigil::services
