// An actor's thread as a loop for classes that know no actors.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include <caf/send.hpp>

#include "base/loop.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

/// Whoever does a piece of work that was to be done there.
using piece_actor = caf::typed_actor<caf::reacts_to<Piece>>;

/// Pieces run as messages of the actor, and not after its end.
class ActorLoop final : public base::Loop {
 public:
  explicit ActorLoop(const piece_actor& actor) : actor_(caf::actor_cast<caf::actor_addr>(actor)) {}

  void post(std::function<void()> piece) override {
    if (const auto actor = caf::actor_cast<piece_actor>(actor_))
      caf::anon_send(actor, Piece{std::move(piece)});
  }
  void after(base::Duration time, std::function<void()> piece) override {
    if (const auto actor = caf::actor_cast<piece_actor>(actor_))
      caf::delayed_anon_send(actor, time, Piece{std::move(piece)});
  }

 private:
  // Weak: the actor owns this.
  const caf::actor_addr actor_;
};

/// Keeps the loop of an actor that ends until the process does: what a registry still answers refers to it.
inline void keep_for_late_answers(std::unique_ptr<ActorLoop> loop) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<ActorLoop>> kept;
  const std::lock_guard lock(mutex);
  kept.push_back(std::move(loop));
}

}  // namespace vigil::fleet
