// To whom a gateway has given its word that it alone says which gateway is the first.
#pragma once

#include <cstdint>
#include <string>

#include "fleet/messages/event_messages.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {

/// Whoever decides which gateway is the first asks all that hold a lease for their word, with the revision at
/// which its own record was made, and nobody gives it to two: it is the next one's if that one's record is
/// younger (it decides since the older ones had no outbox), or once whoever had it is gone or does not decide
/// any more. So of two that decide, for whatever they have seen of each other, one lacks a word. Kept by a
/// gateway without an outbox, too, which may have one soon. Not thread-safe.
class FirstPromise {
 public:
  /// Whoever is gone, or is another one by now, has it no more.
  void see(const GatewayView& view);
  /// A question of kind `state`, of one that is in the view: whether it may have its answer. It has the word
  /// then, if it decides.
  bool hear(const PeerQuestion& question, const GatewayView& view);
  /// Whether a question of kind `nominate` comes of whoever has the word.
  bool is_of(const PeerQuestion& nominate) const;
  /// This one does not decide any more.
  void end(const std::string& who) {
    if (to_ == who) *this = {};
  }
  /// Whether nobody has it.
  bool is_free() const { return to_.empty(); }

 private:
  std::string to_, born_, token_;
  std::uint64_t ballot_ = 0;
};

/// What a gateway answers that has no outbox, since its disk does not let it: whoever comes need not wait for
/// it, since it has nothing that others lack, and takes nothing before it was admitted itself.
PeerAnswer answer_without_outbox(const PeerQuestion& question, const std::string& own,
                                 const GatewayView& view, FirstPromise& promise);

}  // namespace vigil::fleet
