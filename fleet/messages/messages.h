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
//
// Where one node encodes and another has the stream, the two docks stand for what lies between their devices:
//
//   vision device --VisualPatch--> dock ==join, settings, tokens, end (bulk)==> dock --> stream device
//                 <--TokensAck---       <--room, TokensAck (messages)---------
//
// A link goes to both then: patches to the one, answers come from the other. It is up while the way between
// those two stands as well.
//
// Where another node goes on with texts, the docks pass them on, too, and the stream's node keeps what it
// needs to explain an answer itself: it does while there is no way to that node, and when no text comes back.
//
//   stream device --CarriedText--> dock ==text, pages (bulk)==> dock --> generating device
//                                       <--Explanation (message)---
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include <caf/typed_actor.hpp>

#include "actors/messages/messages.h"
#include "cluster/bulk/bulk.h"
#include "config/settings.h"
#include "fleet/messages/device_names.h"
#include "fleet/messages/event_messages.h"
#include "fleet/messages/fleet_query.h"
#include "fleet/messages/past_forms.h"
#include "fleet/messages/shipped.h"

namespace vigil::fleet {

/// What came from another node's port, moved out of by whoever takes it.
struct BulkArrival {
  std::string node;
  cluster::BulkReceived received;
};
using BulkArrivalPtr = std::shared_ptr<BulkArrival>;

/// A way to another node opened, ended, or has room again.
struct BulkNews {
  enum class What : std::uint8_t { opened, ended, room };
  std::string node;
  What what = What::opened;
  cluster::BulkDirection direction = cluster::BulkDirection::outgoing;
  std::string reason = {};
};

/// What a node has read of the fleet's configuration: settings whose secrets are kept as references, or why
/// it cannot take them, in one line without secrets.
struct ReadConfiguration {
  /// Of what is the fleet's (cluster/membership/config_agreement.h).
  std::string hash;
  std::shared_ptr<const config::Settings> settings;
  std::string fault;
};
using ReadConfigurationPtr = std::shared_ptr<const ReadConfiguration>;
/// Who the fleet's gateways are, to this node's own maker and gateway.
struct GatewayNews;
using GatewayNewsPtr = std::shared_ptr<const GatewayNews>;

/// Something to be done by an actor, in its thread.
struct Piece {
  std::function<void()> run;
};

/// How a dock reaches another node's.
struct DockWay;
/// What a node knows of its fleet (messages/node_standing.h).
struct NodeStanding;
using NodeStandingPtr = std::shared_ptr<const NodeStanding>;

/// Where the cameras of this node are computed (turns/window_turns.h).
struct Place;
using PlacesPtr = std::shared_ptr<const std::map<std::string, Place>>;

/// The fleet as it is shown: whether what was asked about is known, and JSON (status/fleet_picture.h).
struct FleetReply {
  bool is_known = true;
  std::string page;
};
using FleetReplyPtr = std::shared_ptr<const FleetReply>;

/// A part of a still or a clip is wanted by that node, from there on; it goes by the bulk way.
struct EvidenceWish {
  std::string node;
  std::string name;
  /// Of whoever asks.
  std::uint64_t ticket = 0;
  std::uint64_t offset = 0;
  /// To send it.
  std::uint32_t attempt = 0;
};

/// A still or a clip, or why there is none, in one line. refused: that is none's name; busy: too many are
/// asked for; failed: a node has it, and it did not come.
struct EvidenceReply {
  enum class What : std::uint8_t { found, absent, refused, busy, failed };
  What what = What::found;
  std::string bytes;
  std::string reason;
};
using EvidenceReplyPtr = std::shared_ptr<const EvidenceReply>;

/// A camera of another node may send so many more patches.
struct GuestRoom {
  std::string camera;
  std::uint32_t patches = 0;
};

/// A camera is not served by the fence that it came with: another node owns it by now, or it has not joined
/// as it is now.
struct GuestRefused {
  std::string camera;
  /// The highest fence that is known of it.
  std::uint64_t fence = 0;
  std::string reason;
};

/// Texts of a camera go on at that node, says its owner; empty: where its stream is.
struct TextsAt {
  std::string camera;
  std::uint64_t fence = 0;
  std::string node;
  friend bool operator==(const TextsAt&, const TextsAt&) = default;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, EvidenceWish& x) {
  return f(caf::meta::type_name("EvidenceWish"), x.node, x.name, x.ticket, x.offset, x.attempt);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GuestRoom& x) {
  return f(caf::meta::type_name("GuestRoom"), x.camera, x.patches);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, GuestRefused& x) {
  return f(caf::meta::type_name("GuestRefused"), x.camera, x.fence, x.reason);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, TextsAt& x) {
  return f(caf::meta::type_name("TextsAt"), x.camera, x.fence, x.node);
}

}  // namespace vigil::fleet

CAF_BEGIN_TYPE_ID_BLOCK(vigil_fleet, caf::id_block::vigil::end)

CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GuestRoom))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GuestRefused))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::EvidenceWish))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::MakerTalk))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::GatewayTalk))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PeerQuestion))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PeerAnswer))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::TextsAt))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PastAsk))
CAF_ADD_TYPE_ID(vigil_fleet, (vigil::fleet::PastWord))

CAF_ADD_ATOM(vigil_fleet, vigil::fleet, attach_atom, "attach")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, over_atom, "over")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, greet_atom, "greet")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, dock_atom, "dock")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, drain_atom, "drain")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, moved_atom, "moved")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, detach_atom, "detach")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, way_atom, "way")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, fence_atom, "fence")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, report_atom, "report")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, stand_atom, "standing")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, find_atom, "find")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, fetch_atom, "fetch")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, gateway_atom, "gateway")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, serves_atom, "serves")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, keeps_atom, "keeps")
CAF_ADD_ATOM(vigil_fleet, vigil::fleet, past_atom, "past")

CAF_END_TYPE_ID_BLOCK(vigil_fleet)

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::BulkArrivalPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::BulkNews)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::GatewayNewsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::Piece)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::ReadConfigurationPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::DockWay)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::NodeStandingPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::PlacesPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::FleetQuery)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::FleetReplyPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::fleet::EvidenceReplyPtr)

namespace vigil::fleet {

using actors::end_atom;
using actors::grant_atom;
using actors::join_atom;
using actors::stop_atom;
using actors::tick_atom;
using actors::tokens_atom;

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
    // Which node goes on with a camera's texts (from its node).
    caf::reacts_to<TextsAt>,
    // A camera is computed elsewhere from now on: what is left of it there ends; and whether its stream goes
    // on there with another tower.
    caf::reacts_to<moved_atom, std::string, bool>,
    // The dock cannot go on for now, and why: attach again (from the dock).
    caf::reacts_to<detach_atom, std::string>,
    // Try to attach again (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The TURNS of two devices, of cameras that move from one to the other: whose windows the alerts actor gets.
using turns_actor = caf::typed_actor<
    // The sending link, of this device, has a window's answers; no window of a camera follows from there.
    caf::reacts_to<std::string, actors::WindowAnswersPtr>, caf::reacts_to<end_atom, std::string, std::string>,
    // This device can be reached; nothing comes from it for now (from its link).
    caf::reacts_to<attach_atom, std::string>, caf::reacts_to<detach_atom, std::string>,
    // Where cameras are, ahead of what comes of them there (from this node).
    caf::reacts_to<PlacesPtr>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// A GUEST stands for a camera of another node, beside the device that computes for it.
using guest_actor = actors::camera_actor;

/// The DOCK lets cameras of other nodes in, and passes the answers about them on.
using dock_actor = actors::answers_actor::extend<
    // A device entered a state.
    caf::reacts_to<actors::DeviceReport>,
    // The sending link of this node begins, for cameras that are encoded by the second node and have their
    // streams at the third, one of which this one is; answered whether it may.
    caf::replies_to<attach_atom, std::string, std::string, std::string>::with<bool>,
    // Explain an answer, or no other will be (from a link).
    caf::reacts_to<actors::Explain>, caf::reacts_to<actors::Done>,
    // Bytes have come, or a way ended.
    caf::reacts_to<BulkArrivalPtr>, caf::reacts_to<BulkNews>,
    // As what takes visual tokens, of this node's devices; and as what makes them.
    caf::reacts_to<tokens_atom, join_atom, actors::WatchPtr, std::uint32_t>,
    caf::reacts_to<tokens_atom, actors::WatchPtr>, caf::reacts_to<actors::VisualPatchPtr>,
    caf::reacts_to<tokens_atom, end_atom, std::string>, caf::reacts_to<tokens_atom, std::string, bool>,
    caf::reacts_to<tokens_atom, actors::Explain>, caf::reacts_to<actors::CarriedTextPtr>,
    caf::reacts_to<actors::TokensRoom>, caf::reacts_to<actors::TokensAck>,
    // The sending dock of this node will bring visual tokens; answered whether it may.
    caf::replies_to<tokens_atom, attach_atom, std::string>::with<bool>,
    // What the dock that is brought them tells: of a camera, of a patch, that a camera is not served; and
    // that this node cannot go on for now, and why.
    caf::reacts_to<tokens_atom, actors::TokensRoom>, caf::reacts_to<tokens_atom, actors::TokensAck>,
    caf::reacts_to<tokens_atom, GuestRefused>,
    caf::reacts_to<tokens_atom, detach_atom, std::string, std::string>,
    // Which node goes on with a camera's texts (from a link); what became of one that went to another node
    // (from its dock).
    caf::reacts_to<TextsAt>, caf::reacts_to<tokens_atom, actors::Explanation>,
    // This node's actor, which is asked for ways to others; and a way.
    caf::reacts_to<way_atom, caf::strong_actor_ptr>, caf::reacts_to<DockWay>,
    // Look for guests whose node does not come back (to itself).
    caf::reacts_to<tick_atom>,
    // The highest fence that has come (from its node).
    caf::replies_to<fence_atom>::with<std::uint64_t>,
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
    // The highest fence of a camera that its books have (from its node).
    caf::replies_to<fence_atom>::with<std::uint64_t>,
    // Close all, and quit.
    caf::reacts_to<stop_atom>>;

/// The MAKER hands this node's events to all gateways.
using maker_actor = actors::claims_actor::extend<
    // Which gateways there are (from its node).
    caf::reacts_to<GatewayNewsPtr>,
    // A camera is this node's by the plan; it is not any more (from its node).
    caf::reacts_to<join_atom, std::string>, caf::reacts_to<moved_atom, std::string>,
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
  /// Whether the registry answers: whoever is gone since it does not is among these.
  bool registry_answers = true;
  /// Other nodes that have events of cameras that they do not have any more, and that no gateway has taken;
  /// and those that are gone with such events since the last news.
  std::set<std::string> keepers = {};
  std::set<std::string> gone_keepers = {};
};

/// What one node asks another one first.
using greeter_actor = caf::typed_actor<
    // A greeting, answered by one or by a refusal (cluster/membership/greeting.h).
    caf::replies_to<greet_atom, std::string>::with<std::string>,
    // Its dock; null if it computes nothing.
    caf::replies_to<dock_atom>::with<caf::strong_actor_ptr>,
    // What it is and has, for who shows the fleet: a NodeQuestion, answered by a NodeAnswer
    // (status/node_answer.h).
    caf::replies_to<report_atom, std::string>::with<std::string>,
    // Bytes of a still or a clip of this name that it has; 0: none. And a part of it is wanted.
    caf::replies_to<find_atom, std::string>::with<std::uint64_t>, caf::reacts_to<fetch_atom, EvidenceWish>,
    // Which of its clips show what a camera saw: a ClipWish, answered by FoundClips (clip_wish.h).
    caf::replies_to<find_atom, past_atom, std::string>::with<std::string>,
    // Its gateway; null if it is none.
    caf::replies_to<gateway_atom>::with<caf::strong_actor_ptr>,
    // Whoever answers about what it remembers; null if it remembers nothing.
    caf::replies_to<past_atom>::with<caf::strong_actor_ptr>>;

/// The NODE keeps this process a member of its fleet: its lease, its plan, whom it knows, and the links to
/// those that compute for its cameras.
using node_actor = greeter_actor::extend<
    // A piece of work that was to be done here (from anywhere).
    caf::reacts_to<Piece>,
    // What the bulk port heard (from its thread).
    caf::reacts_to<BulkNews>, caf::reacts_to<BulkArrivalPtr>,
    // The configuration was read again (from whoever follows it).
    caf::reacts_to<ReadConfigurationPtr>,
    // What it knows of its fleet (from this process).
    caf::replies_to<stand_atom>::with<NodeStandingPtr>,
    // By such a fence a camera of this node was refused, where it has to be let in (from a link, and from its
    // maker).
    caf::reacts_to<fence_atom, std::string, std::uint64_t>,
    // Its gateway serves, or does not (any more).
    caf::reacts_to<serves_atom, bool>,
    // Its maker has events of cameras that are others' by now, or has none (any more).
    caf::reacts_to<keeps_atom, bool>,
    // Be rid of all that it has, answered when it is.
    caf::replies_to<drain_atom>::with<bool>,
    // The dock needs a way to this node's.
    caf::reacts_to<way_atom, std::string>,
    // Do what is due (to itself).
    caf::reacts_to<tick_atom>,
    // Leave the fleet, and quit.
    caf::reacts_to<stop_atom>>;

struct DockWay {
  std::string node;
  dock_actor dock;
  /// By the bulk way to it, and whether that stands.
  std::function<cluster::BulkSent(const cluster::BulkMessage&)> send;
  bool is_open = false;
};
/// The FLEET STATUS tells people what is known of all nodes and cameras.
using fleet_status_actor = caf::typed_actor<
    // What they ask; answered within about twice its patience, or an error in one line.
    caf::replies_to<report_atom, FleetQuery>::with<FleetReplyPtr>,
    // A piece of work that was to be done here (from the registry's threads).
    caf::reacts_to<Piece>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The FETCHER gives out stills and clips of this node's disk, and fetches those of others.
using fetcher_actor = caf::typed_actor<
    // The sending node is its own.
    caf::reacts_to<stand_atom>,
    // As of a greeter, which passes these on.
    caf::replies_to<find_atom, std::string>::with<std::uint64_t>, caf::reacts_to<fetch_atom, EvidenceWish>,
    // A part has come (from its node).
    caf::reacts_to<BulkArrivalPtr>,
    // A still or a clip is wanted by a person; answered within kFetcherAnswers.
    caf::replies_to<fetch_atom, std::string>::with<EvidenceReplyPtr>,
    // Look for parts that do not come (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

}  // namespace vigil::fleet
