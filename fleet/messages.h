// What nodes tell each other beside bulk bytes, and the actors that do it, a sentence each.
//
//   camera node                                             node that computes
//   router --FramePatch--> link ==join, settings, patch, end (bulk)==> dock --> guest --> router --> device
//          <--PatchAck----      <--room, PatchAck (messages)---------- guest
//   alerts <-WindowAnswers      <--WindowForm, Explanation, over------ dock <--answers-- device
//          --Explain, Done-->   ---Explain, Done (messages)----------> dock ------------> device
//
// To a camera node's router and alerts, a link is the device itself; to a device, a guest is the camera and
// the dock is the alerts actor. What goes one way goes by one channel, in its order; when either channel
// breaks, the link is made anew, as a device that was started again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <caf/typed_actor.hpp>

#include "actors/messages/messages.h"
#include "cluster/bulk/bulk.h"
#include "fleet/events/event_messages.h"
#include "fleet/events/shipped.h"

namespace vigil::fleet {

/// What came from another node's port, moved out of by whoever takes it.
struct BulkArrival {
  std::string node;
  cluster::BulkReceived received;
};
using BulkArrivalPtr = std::shared_ptr<BulkArrival>;

/// A way to another node opened (then with its port's incarnation), ended, or has room again.
struct BulkNews {
  enum class What : std::uint8_t { opened, ended, room };
  std::string node;
  What what = What::opened;
  cluster::BulkDirection direction = cluster::BulkDirection::outgoing;
  std::uint64_t incarnation = 0;
  std::string reason = {};
};

/// Who the fleet's gateways are, to this node's own maker and gateway.
struct GatewayNews;
using GatewayNewsPtr = std::shared_ptr<const GatewayNews>;

/// Something to be done by an actor, in its thread.
struct Piece {
  std::function<void()> run;
};

/// A camera of another node may send so many more patches.
struct GuestRoom {
  std::string camera;
  std::uint32_t patches = 0;
};

/// A camera is not served: it has another owner, or there is no device.
struct GuestRefused {
  std::string camera;
  /// The highest fence that is known of it.
  std::uint64_t fence = 0;
  std::string reason;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GuestRoom& x) {
  return f(caf::meta::type_name("GuestRoom"), x.camera, x.patches);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GuestRefused& x) {
  return f(caf::meta::type_name("GuestRefused"), x.camera, x.fence, x.reason);
}

}  // namespace vigil::fleet

CAF_BEGIN_TYPE_ID_BLOCK(vigil_fleet, caf::id_block::vigil::end)

CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GuestRoom))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GuestRefused))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::MakerTalk))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GatewayTalk))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PeerQuestion))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PeerAnswer))

CAF_ADD_ATOM(vigil_fleet, vigil::fleet, attach_atom, "attach")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, over_atom, "over")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, greet_atom, "greet")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, dock_atom, "dock")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, drain_atom, "drain")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, moved_atom, "moved")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, gateway_atom, "gateway")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, serves_atom, "serves")

CAF_END_TYPE_ID_BLOCK(vigil_fleet)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::BulkArrivalPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::BulkNews)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::GatewayNewsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::Piece)

namespace vigil::fleet {

using actors::end_atom;
using actors::grant_atom;
using actors::join_atom;
using actors::stop_atom;
using actors::tick_atom;

/// The LINK stands for the device of another node.
using link_actor = caf::typed_actor<
    // As vision, of this node's router.
    caf::reacts_to<join_atom, actors::WatchPtr, std::uint32_t>, caf::reacts_to<actors::WatchPtr>,
    caf::reacts_to<actors::FramePatchPtr>, caf::reacts_to<end_atom, std::string>,
    // As stream, of this node's alerts actor.
    caf::reacts_to<grant_atom, std::uint32_t>, caf::reacts_to<actors::Explain>, caf::reacts_to<actors::Done>,
    caf::reacts_to<actors::Returned>,
    // A camera may send more; what became of a patch (from a guest).
    caf::reacts_to<GuestRoom>, caf::reacts_to<actors::PatchAck>,
    // A camera is not served there (from the dock).
    caf::reacts_to<GuestRefused>,
    // A window's answers, and the text of one (from the dock).
    caf::reacts_to<actors::WindowForm>, caf::reacts_to<actors::Explanation>,
    // All that a camera sent has come out of the device (from the dock).
    caf::reacts_to<over_atom, std::string>,
    // The bulk way to its node opened, ended, or has room.
    caf::reacts_to<BulkNews>,
    // A camera is computed elsewhere from now on: what is left of it there ends.
    caf::reacts_to<moved_atom, std::string>,
    // Try to attach again (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// A GUEST stands for a camera of another node, beside the device that computes for it.
using guest_actor = actors::camera_actor;

/// The DOCK lets cameras of other nodes in, and passes the answers about them on.
using dock_actor = actors::answers_actor::extend<
    // A device entered a state.
    caf::reacts_to<actors::DeviceReport>,
    // The sending link of this node begins; answered when it may.
    caf::replies_to<attach_atom, std::string>::with<bool>,
    // Explain an answer, or no other will be (from a link).
    caf::reacts_to<actors::Explain>, caf::reacts_to<actors::Done>,
    // Bytes have come, or a way ended.
    caf::reacts_to<BulkArrivalPtr>, caf::reacts_to<BulkNews>,
    // Look for guests whose node does not come back (to itself).
    caf::reacts_to<tick_atom>,
    // Let all end, and quit.
    caf::reacts_to<stop_atom>>;

/// The GATEWAY keeps events that are committed, and has them published and replayed.
using gateway_actor = caf::typed_actor<
    // What a maker has to tell.
    caf::replies_to<MakerTalk>::with<GatewayTalk>,
    // What a gateway that comes asks.
    caf::replies_to<PeerQuestion>::with<PeerAnswer>,
    // Which others there are (from its node, which is told whether it serves).
    caf::reacts_to<GatewayNewsPtr>,
    // Do what is due (to itself).
    caf::reacts_to<tick_atom>,
    // Close all, and quit.
    caf::reacts_to<stop_atom>>;

/// The MAKER hands this node's events to all gateways.
using maker_actor = actors::claims_actor::extend<
    // Which gateways there are (from its node).
    caf::reacts_to<GatewayNewsPtr>,
    // Something was published.
    caf::reacts_to<actors::work_atom>,
    // Do what is due (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

struct GatewayNews {
  GatewayView view;
  /// Those that can be reached.
  std::map<std::string, gateway_actor> ways;
  /// The registry's revision at which this node's record was put; 0 before that.
  std::uint64_t own_revision = 0;
};

/// What one node asks another one first.
using greeter_actor = caf::typed_actor<
    // A greeting, answered by one or by a refusal (cluster/membership/greeting.h).
    caf::replies_to<greet_atom, std::string>::with<std::string>,
    // Its dock; null if it computes nothing.
    caf::replies_to<dock_atom>::with<caf::strong_actor_ptr>,
    // Its gateway; null if it is none.
    caf::replies_to<gateway_atom>::with<caf::strong_actor_ptr>>;

/// The NODE keeps this process a member of its fleet: its lease, its plan, whom it knows, and the links to
/// those that compute for its cameras.
using node_actor = greeter_actor::extend<
    // A piece of work that was to be done here (from anywhere).
    caf::reacts_to<Piece>,
    // What the bulk port heard (from its thread).
    caf::reacts_to<BulkNews>, caf::reacts_to<BulkArrivalPtr>,
    // Its gateway serves, or does not (any more).
    caf::reacts_to<serves_atom, bool>,
    // Be rid of all that it has, answered when it is.
    caf::replies_to<drain_atom>::with<bool>,
    // Do what is due (to itself).
    caf::reacts_to<tick_atom>,
    // Leave the fleet, and quit.
    caf::reacts_to<stop_atom>>;

}  // namespace vigil::fleet
