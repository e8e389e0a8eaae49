#include "fleet/node/started_actors.h"

#include <algorithm>
#include <chrono>

#include <caf/actor_cast.hpp>
#include <caf/scoped_actor.hpp>

namespace vigil::fleet {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether this one, which is watched, has ended by then; what is told of others is passed over.
bool has_ended(caf::scoped_actor& self, const caf::actor_addr& actor, Clock::time_point last) {
  for (;;) {
    const auto left = std::max(last - Clock::now(), Clock::duration::zero());
    bool is_told = false;
    caf::actor_addr gone;
    self->receive(
        [&](const caf::down_msg& down) {
          is_told = true;
          gone = down.source;
        },
        caf::after(std::chrono::duration_cast<base::Duration>(left)) >> [] {});
    if (!is_told) return false;
    if (gone == actor) return true;
  }
}

}  // namespace

bool StartedActors::end(base::Duration within) {
  const auto last = Clock::now() + within;
  // Hidden, so that nobody waits for who waits.
  caf::scoped_actor self{system_, /*hide=*/true};
  bool is_well = true;
  for (; !started_.empty(); started_.pop_back()) {
    auto& [actor, stop] = started_.back();
    self->monitor(actor);
    stop();
    const auto now = Clock::now();
    const auto share = std::max(last - now, Clock::duration::zero()) / static_cast<int>(started_.size());
    if (has_ended(self, actor, now + share)) continue;
    is_well = false;
    if (const auto still = caf::actor_cast<caf::strong_actor_ptr>(actor))
      caf::anon_send_exit(caf::actor_cast<caf::actor>(still), caf::exit_reason::kill);
  }
  return is_well;
}

}  // namespace vigil::fleet
