// The shell around `MakerDesk`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/status/metrics.h"
#include "base/clock.h"
#include "fleet/events/maker_desk.h"
#include "fleet/events/shipping_publisher.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

struct MakerDeps {
  std::string node;
  /// Of this run of the program.
  std::string session;
  ShippingPublisher& publisher;
  const base::Clock& clock;
  actors::Metrics& metrics;
  spdlog::logger& logger;
  /// How long a gateway may take to answer.
  base::Duration patience{5000};
};

struct maker_state {
  explicit maker_state(maker_actor::pointer self_pointer) : self(self_pointer) {}

  void see(const GatewayNews& news);
  void claim(const std::string& camera, std::uint64_t fence, actors::alerts_actor from);
  void claim_own();
  void take_events();
  void pump();
  void tell();
  void warn();

  maker_actor::pointer self;
  std::optional<MakerDeps> deps;
  std::optional<MakerDesk> desk;
  GatewayNews known;
  /// Who claims; null as long as nobody has.
  actors::alerts_actor alerts;
  bool wants_own = false;
  /// Of this process's own news.
  std::string own_series;
  std::uint64_t epoch = 0;
  bool was_warned = false;
  static inline const char* name = "maker";
};

maker_actor::behavior_type maker(maker_actor::stateful_pointer<maker_state> self, MakerDeps deps);

}  // namespace vigil::fleet
