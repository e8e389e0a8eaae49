// The interface of whoever asks all nodes about the past, and answers them (fleet/past/).
#pragma once

#include <cstdint>

#include <caf/typed_actor.hpp>

#include "actors/messages/cache.h"
#include "fleet/messages/messages.h"

namespace vigil::fleet {

/// The PAST puts questions about it to all nodes that remember, answers those of others out of this node's
/// cache, and has it erase what the registry says.
using past_actor = caf::typed_actor<
    // The sending node is its own.
    caf::reacts_to<stand_atom>,
    // A request of this process, whose replies go to the sender; and one whose answer nobody waits for any
    // more.
    caf::reacts_to<actors::PastRequestPtr>, caf::reacts_to<actors::forget_atom, std::uint64_t>,
    // A request of a node's, about what is remembered here; and one whose answer it does not wait for.
    caf::reacts_to<PastAsk>, caf::reacts_to<past_atom, std::uint64_t>,
    // What another node, and this one's cache, say.
    caf::reacts_to<PastWord>, caf::reacts_to<actors::PastReplyPtr>,
    // A piece of work that was to be done here (from the registry's threads).
    caf::reacts_to<Piece>,
    // Look for what takes too long (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

}  // namespace vigil::fleet
