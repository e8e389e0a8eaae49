// The shell around `PastDesk` and `ErasureBook`: what a node's cache remembers is asked by all nodes, and
// erased for all.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <caf/stateful_actor.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <spdlog/logger.h>

#include "actors/messages/cache.h"
#include "actors/status/erasure_series.h"
#include "actors/status/metrics.h"
#include "base/clock.h"
#include "cluster/membership/registry_mirror.h"
#include "cluster/registry/registry.h"
#include "fleet/messages/actor_loop.h"
#include "fleet/messages/messages.h"
#include "fleet/messages/node_standing.h"
#include "fleet/messages/past_interface.h"
#include "fleet/past/erasure_book.h"
#include "fleet/past/past_desk.h"

namespace vigil::fleet {

struct PastDeps {
  std::string fleet;
  /// This node, and what tells one run of it from another.
  std::string node;
  std::string incarnation;
  /// Null: this node remembers nothing.
  actors::cache_actor cache;
  bool has_disk = false;
  /// It removes from the registry what is over.
  bool is_gateway = false;
  /// All have to outlive it, and the registry what it is asked.
  cluster::Registry& registry;
  const base::Clock& clock;
  spdlog::logger& logger;
  actors::Metrics& metrics;
  /// How long a node may take to say who answers there.
  base::Duration patience{2000};
};

struct past_state {
  explicit past_state(past_actor::pointer self_pointer) : self(self_pointer) {}
  ~past_state() { keep_for_late_answers(std::move(loop)); }

  void start();

  // past_erasures.cpp: what the registry says is to be erased.

  /// Its keys are others.
  void see();
  /// Tells there that this node remembers.
  void register_here();
  /// Whether some are done by now, and over.
  void look_at_erasures();
  void know_present(const NodeStanding& standing);
  void do_erasures();
  void erased(const std::string& id, const actors::PastReply& word);
  void tell_done(const std::string& id, std::size_t pages);
  void commit(cluster::RegistryTransaction transaction,
              std::function<void(const cluster::RegistryResult<cluster::RegistryCommit>&)> then);

  // Questions, between those who ask here, other nodes and this one's cache.

  /// Who is to be asked is asked who answers there.
  void look_around(std::uint64_t id, const actors::PastRequest& what, const NodeStanding& standing);
  void ask(std::uint64_t id, const std::string& node, const actors::PastRequest& what,
           const past_actor& there);
  /// Nodes that read cameras are asked for clips.
  void look_for_clips(std::uint64_t id, const ClipWish& wish, const NodeStanding& standing);
  void hear(const PastWord& word, const caf::actor_addr& from);
  void answer(const PastAsk& ask, const past_actor& asker);
  void hear(const actors::PastReply& word);
  void forget_asker(std::uint64_t ticket, const caf::actor_addr& asker);
  void lost(const caf::actor_addr& address);
  void settle();
  void tick();
  void stop();

  past_actor::pointer self;
  std::optional<PastDeps> deps;
  std::unique_ptr<ActorLoop> loop;
  std::optional<ErasureBook> book;
  std::optional<actors::ErasureSeries> series;
  std::optional<PastDesk> desk;
  std::optional<cluster::RegistryMirror> mirror;
  node_actor owner;
  /// Whether it was told what there is to be erased; what is asked before that waits.
  bool knows_erasures = false;
  std::vector<std::pair<PastAsk, past_actor>> held;
  /// What its cache was asked, by ticket: for whom, and under which ticket of his; or which erasure.
  struct Asker {
    past_actor who;
    std::uint64_t ticket = 0;
  };
  std::map<std::uint64_t, Asker> askers;
  std::map<std::uint64_t, std::string> erasing;
  std::uint64_t tickets = 0;
  /// Whom it has asked, by the desk's id.
  std::map<std::uint64_t, std::map<caf::actor_addr, std::string>> asked;
  std::set<caf::actor_addr> watched;
  /// Who asks in this process, by his ticket.
  std::map<std::uint64_t, actors::past_listener_actor> listeners;
  /// Lines about the registry's keys that were told.
  std::set<std::string> faults;
  bool is_registering = false, is_looking = false;
  base::Clock::TimePoint next_look{};
  /// Of erasures that could not be done: how long until they are tried again.
  std::map<std::string, base::Duration> waits;
  static inline const char* name = "past";
};

/// Quits with its node.
past_actor::behavior_type past(past_actor::stateful_pointer<past_state> self, PastDeps deps);

}  // namespace vigil::fleet
