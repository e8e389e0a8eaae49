// The shell around `GatewayDesk` and `GatewayJoining`: keeps events, and has them published while it serves.
// Waits for disks, so it wants a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/alerts/outbox.h"
#include "actors/alerts/outbox_publishing.h"
#include "actors/alerts/publisher.h"
#include "actors/status/gateway_series.h"
#include "actors/status/metrics.h"
#include "actors/status/status_board.h"
#include "base/clock.h"
#include "fleet/events/gateway_desk.h"
#include "fleet/events/gateway_joining.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

struct GatewayDeps {
  std::string node;
  /// Opens the outbox, again and again as long as it cannot be had; `anew`: an empty one in its place. Throws
  /// OutboxError.
  std::function<std::unique_ptr<actors::Outbox>(bool anew)> open;
  /// Opens the topics, to publish and replay what is in the outbox, which outlives them. Throws.
  std::function<std::unique_ptr<actors::Publisher>(const actors::Outbox&)> topics;
  /// As `GatewayJoining` wants it.
  std::function<std::string(const std::string& after)> token;
  base::Duration retention;
  const base::Clock& clock;
  actors::Metrics& metrics;
  actors::StatusBoard& board;
  spdlog::logger& logger;
  /// This process does nothing else: without an outbox it is not ready.
  bool is_alone = false;
  /// How long another gateway may take to answer.
  base::Duration patience{5000};
};

struct gateway_state {
  explicit gateway_state(gateway_actor::pointer self_pointer) : self(self_pointer) {}

  void open();
  /// Does it, and what follows of it. What the disk does not do ends this time of serving.
  void attempt(const std::function<void()>& what);
  void fail(const std::string& why);
  /// What its outbox has to say of itself, as of damage.
  void hear_outbox();
  /// To the others, that nobody is to wait for this one.
  void withdraw();
  void pump();
  void ask(const GatewayJoining::Ask& ask);
  void publish();
  void open_topics();
  void tell();
  /// To its metrics, and to its log what they cannot tell.
  void count();
  void tell_gaps();
  void tick();
  void close();

  gateway_actor::pointer self;
  std::optional<GatewayDeps> deps;
  std::unique_ptr<actors::Outbox> outbox;
  std::optional<GatewayDesk> desk;
  std::optional<GatewayJoining> joining;
  /// Tells one joining from the one before it.
  std::uint64_t joinings = 0;
  std::string identity;
  std::unique_ptr<actors::Publisher> publisher;
  std::optional<actors::OutboxPublishing> publishing;
  std::optional<actors::GatewaySeries> series;
  GatewayNews known;
  node_actor node;
  bool told_serving = false;
  std::string logged;
  /// Why its outbox cannot be had.
  std::string trouble;
  /// Why it does not serve, as it was told last.
  std::optional<std::string> told;
  /// To whom it has given its word, while there is no joining that would know.
  FirstPromise promise;
  /// When a gap of a series was told last.
  std::map<std::string, base::Clock::TimePoint> gaps_told;
  base::Clock::TimePoint open_at{};
  base::Clock::TimePoint topics_at{};
  base::Clock::TimePoint prune_at{};
  bool wants_empty = false;
  static inline const char* name = "gateway";
};

gateway_actor::behavior_type gateway(gateway_actor::stateful_pointer<gateway_state> self, GatewayDeps deps);

}  // namespace vigil::fleet
