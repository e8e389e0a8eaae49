// The shell around `MakerDesk`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/status/maker_series.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
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
  actors::StatusBoard& board;
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
  /// For which gateway events wait that does not answer, and why that has no end by itself.
  void tell_waits();

  maker_actor::pointer self;
  std::optional<MakerDeps> deps;
  std::optional<MakerDesk> desk;
  GatewayNews known;
  /// Who claims; null as long as nobody has.
  actors::alerts_actor alerts;
  node_actor node;
  bool wants_own = false;
  bool told_keeps = false;
  /// Of this process's own news.
  std::string own_series;
  std::uint64_t epoch = 0;
  bool was_warned = false;
  std::optional<actors::MakerSeries> series;
  /// Why events wait, as it was told last.
  std::string waits;
  static inline const char* name = "maker";
};

maker_actor::behavior_type maker(maker_actor::stateful_pointer<maker_state> self, MakerDeps deps);

}  // namespace vigil::fleet
