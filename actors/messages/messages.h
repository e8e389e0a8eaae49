// Every message of the pipeline and every actor's interface, a sentence each. What they carry is in `data.h`
// and `reports.h`; the cache's and its own actors' are in `cache.h`.
//
//   camera --FramePatch--> router --FramePatch--> vision . stream --WindowAnswers--> alerts
//          <--PatchAck----        <--PatchAck----                 <-----credit------
//                                                                 <--Explain, Done---
//                                                                 ---Explanation----->
//                                                        --LentText--> target ---Explanation--> alerts
//                                                        <--Returned--
//                                             --batch--> tower, where it has a thread of its own
//                                             <--result-
//                       vision --VisualPatch--> stream, where another device has it
//                              <--TokensAck----
//                                                                  evidence <--EvidenceRequest-- alerts
//                                                                           ---EvidenceReport-->
//
// Vision and stream are what a device computes, one piece after the other: two parts of its executor. There
// is a target for each device whose answers go on on another one.
//
// A camera's settings go the way of its patches ahead of the first that refers to them, and once: patches
// name them (`watch.h`).
//
// Credits flow against the data: who receives grants so many messages more, and who has no credit sends
// nothing. `end` follows the last message of a camera through the whole pipeline, so that a drain is one
// message that comes out at the other side.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <caf/allowed_unsafe_message_type.hpp>
#include <caf/atom.hpp>
#include <caf/meta/type_name.hpp>
#include <caf/type_id.hpp>
#include <caf/typed_actor.hpp>

#include "actors/messages/data.h"
#include "actors/messages/inspect.h"
#include "actors/messages/reports.h"
#include "actors/messages/wire.h"

namespace vigil::actors {

/// A device's actor tells that its device entered a state, and who takes patches there while it is up.
struct DeviceReport;

/// The supervisor tells where the patches of a camera go.
struct Route;

/// Whom a device has to do with, if it is another node's.
struct Stages;

/// A text on its way to the device that goes on with it, and the asker's name for it (lent_text.h).
struct LentText;
using LentTextPtr = std::shared_ptr<LentText>;

/// A text on its way to another node's device, and copies of the pages that it sees (carried_text.h).
struct CarriedText;
using CarriedTextPtr = std::shared_ptr<const CarriedText>;

/// Where the series of a camera goes on (actors/alerts/books.h).
struct SeriesBooks;
using SeriesBooksPtr = std::shared_ptr<const SeriesBooks>;

/// What the cache asks of devices (remembered.h): of its own actors and messages, `cache.h`.
struct WantedForms;
using WantedFormsPtr = std::shared_ptr<const WantedForms>;
struct Recall;
using RecallPtr = std::shared_ptr<const Recall>;
struct Show;
using ShowPtr = std::shared_ptr<const Show>;

/// Patches for a tower that has a thread of its own, and what came of them (actors/vision/encode.h), which
/// whoever takes it moves out of.
using PatchBatchPtr = std::shared_ptr<const std::vector<FramePatchPtr>>;
struct Encoded;
using EncodedPtr = std::shared_ptr<Encoded>;

}  // namespace vigil::actors

CAF_BEGIN_TYPE_ID_BLOCK(vigil, caf::first_custom_type_id)

CAF_ADD_TYPE_ID(vigil, (vigil::actors::CameraState))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::CameraReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::DrainReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::Explanation))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::RecorderReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::PatchAck))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::StatusChange))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::EvidenceRequest))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::EvidenceReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::DeviceReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::Explain))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::Done))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::Returned))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::Route))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::WatchSettings))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::PatchForm))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::WindowForm))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::StatusReport))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::TokensRoom))
CAF_ADD_TYPE_ID(vigil, (vigil::actors::TokensAck))

CAF_ADD_ATOM(vigil, vigil::actors, join_atom, "join")
CAF_ADD_ATOM(vigil, vigil::actors, grant_atom, "grant")
CAF_ADD_ATOM(vigil, vigil::actors, end_atom, "end")
CAF_ADD_ATOM(vigil, vigil::actors, step_atom, "step")
CAF_ADD_ATOM(vigil, vigil::actors, work_atom, "work")
CAF_ADD_ATOM(vigil, vigil::actors, tick_atom, "tick")
CAF_ADD_ATOM(vigil, vigil::actors, dial_atom, "dial")
CAF_ADD_ATOM(vigil, vigil::actors, stop_atom, "stop")
CAF_ADD_ATOM(vigil, vigil::actors, force_atom, "force")
CAF_ADD_ATOM(vigil, vigil::actors, giveup_atom, "giveup")
CAF_ADD_ATOM(vigil, vigil::actors, wait_atom, "wait")
CAF_ADD_ATOM(vigil, vigil::actors, reload_atom, "reload")
CAF_ADD_ATOM(vigil, vigil::actors, forget_atom, "forget")
CAF_ADD_ATOM(vigil, vigil::actors, probe_atom, "probe")
CAF_ADD_ATOM(vigil, vigil::actors, status_atom, "status")
CAF_ADD_ATOM(vigil, vigil::actors, stages_atom, "stages")
CAF_ADD_ATOM(vigil, vigil::actors, claim_atom, "claim")
CAF_ADD_ATOM(vigil, vigil::actors, lost_atom, "lost")
CAF_ADD_ATOM(vigil, vigil::actors, removed_atom, "removed")
CAF_ADD_ATOM(vigil, vigil::actors, tokens_atom, "tokens")
CAF_ADD_ATOM(vigil, vigil::actors, anew_atom, "anew")

CAF_END_TYPE_ID_BLOCK(vigil)

// Handles to pixels, embeddings, windows and settings never leave the process: they are shared and immutable.
// What of them may leave has a form (`wire.h`). They must not get a type id themselves, since CAF would then
// send a default-constructed one to another node without a word.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::CameraPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::WatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::CameraList)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::FramePatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::VisualPatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::WindowAnswersPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::LentTextPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::CarriedTextPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::SeriesBooksPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::WantedFormsPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::RecallPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::ShowPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::PatchBatchPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::EncodedPtr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::SourceRest)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::ReachReport)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::Recording)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(vigil::actors::Stages)

namespace vigil::actors {

/// The CAMERA reads and decodes one source, from an attempt to open it until it is lost; the next attempt is
/// another actor's.
using camera_actor = caf::typed_actor<
    // So many more patches may be sent.
    caf::reacts_to<grant_atom, std::uint32_t>,
    // What became of a patch that it has sent; gives its credit back, unless it was lost.
    caf::reacts_to<PatchAck>,
    // Another device takes its patches from now on, which has seen nothing of it: the next patch is whole.
    caf::reacts_to<anew_atom>,
    // Do the next piece of work (to itself).
    caf::reacts_to<step_atom>,
    // Its rules or labels are others now; patches that are begun from now on say so.
    caf::reacts_to<CameraPtr, WatchPtr>,
    // Close the source, send what was begun, then `end`, and quit.
    caf::reacts_to<stop_atom>>;

/// The ROUTER sends patches to their camera's device and keeps the books of the camera's credit.
using router_actor = caf::typed_actor<
    // The sending camera starts, in its n-th incarnation; it is granted credit in return.
    caf::reacts_to<join_atom, WatchPtr, std::uint32_t>,
    // A camera's settings are these from its next patch on, or from its end.
    caf::reacts_to<WatchPtr>,
    // A patch; costs the camera a credit, and is acknowledged.
    caf::reacts_to<FramePatchPtr>,
    // No patch of this camera follows.
    caf::reacts_to<end_atom, std::string>,
    // Vision, which the camera has just joined, has room for so many patches of it.
    caf::reacts_to<grant_atom, std::string, std::uint32_t>,
    // What became of a patch that vision was sent.
    caf::reacts_to<PatchAck>,
    // A camera's patches go to this vision actor from now on, or nowhere.
    caf::reacts_to<Route>,
    // This camera is gone for good.
    caf::reacts_to<forget_atom, std::string>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// VISION takes patches of cameras and makes visual tokens of them.
using vision_actor = caf::typed_actor<
    // A camera's patches will come from the sending router, in the camera's n-th incarnation; the router is
    // granted credit for it in return.
    caf::reacts_to<join_atom, WatchPtr, std::uint32_t>,
    // A camera's settings are these from its next patch on.
    caf::reacts_to<WatchPtr>,
    // A patch to encode, which is acknowledged.
    caf::reacts_to<FramePatchPtr>,
    // No patch of this camera follows.
    caf::reacts_to<end_atom, std::string>>;

/// STREAM owns the streams of cameras and answers their windows; it keeps what explains them.
using stream_actor = caf::typed_actor<
    // The alerts actor can take so many more windows.
    caf::reacts_to<grant_atom, std::uint32_t>,
    // Explain an answer; `Explanation` comes back, from here or from target.
    caf::reacts_to<Explain>,
    // No other answer of a window will be explained.
    caf::reacts_to<Done>,
    // A text that was lent is not needed here any more.
    caf::reacts_to<Returned>>;

/// What takes visual tokens that another device makes: the stream there, or what stands for it.
using tokens_actor = caf::typed_actor<
    // A camera's visual tokens will come from the sender, in its n-th session of this camera; it is granted
    // `TokensRoom` for it in return. A stream of this camera that is there goes on.
    caf::reacts_to<tokens_atom, join_atom, WatchPtr, std::uint32_t>,
    // A camera's settings are these from its next patch on.
    caf::reacts_to<tokens_atom, WatchPtr>,
    // The visual tokens of a patch, in the host's memory; costs a credit, and is answered by a `TokensAck`.
    caf::reacts_to<VisualPatchPtr>,
    // No patch of this camera follows.
    caf::reacts_to<tokens_atom, end_atom, std::string>,
    // Whether the visual tokens of a camera, which this device makes, go elsewhere from its next join on.
    caf::reacts_to<tokens_atom, std::string, bool>,
    // Give a text away that is to be explained: a `CarriedTextPtr` goes to what stands for other devices, or
    // it is explained here, if there is nothing to give.
    caf::reacts_to<tokens_atom, Explain>,
    // A text of another node's device to go on with; `Explanation` goes to who takes answers.
    caf::reacts_to<CarriedTextPtr>>;

/// What makes them, or what stands for it.
using tokens_sender_actor = caf::typed_actor<
    // Visual tokens of a camera can be taken; what became of those of a patch.
    caf::reacts_to<TokensRoom>, caf::reacts_to<TokensAck>>;

/// The EXECUTOR is the one thread of a device: vision and stream, whose pieces it runs one after the other;
/// or of its language model alone, where the vision tower has a thread of its own, or is on another device;
/// or of its vision tower alone.
using executor_actor = caf::typed_actor<
    // As vision.
    caf::reacts_to<join_atom, WatchPtr, std::uint32_t>, caf::reacts_to<WatchPtr>,
    caf::reacts_to<FramePatchPtr>, caf::reacts_to<end_atom, std::string>,
    // As stream.
    caf::reacts_to<grant_atom, std::uint32_t>, caf::reacts_to<Explain>, caf::reacts_to<Done>,
    caf::reacts_to<Returned>,
    // Of cameras whose other half is on another device: as what takes visual tokens,
    caf::reacts_to<tokens_atom, join_atom, WatchPtr, std::uint32_t>, caf::reacts_to<tokens_atom, WatchPtr>,
    caf::reacts_to<VisualPatchPtr>, caf::reacts_to<tokens_atom, end_atom, std::string>,
    caf::reacts_to<tokens_atom, std::string, bool>, caf::reacts_to<tokens_atom, Explain>,
    caf::reacts_to<CarriedTextPtr>,
    // and as what makes them.
    caf::reacts_to<TokensRoom>, caf::reacts_to<TokensAck>,
    // The tower is done with the batch that it was sent.
    caf::reacts_to<EncodedPtr>,
    // For the cache (`recalling_actor`).
    caf::reacts_to<WantedFormsPtr>, caf::reacts_to<ShowPtr>, caf::reacts_to<RecallPtr>,
    caf::reacts_to<forget_atom, std::uint64_t>,
    // Run the next piece (to itself).
    caf::reacts_to<work_atom>,
    // Say that you are alive, and take back what is past its deadline (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The TOWER actor computes with a vision tower that does not share its device's thread.
using tower_actor = caf::typed_actor<
    // Encode these; the result goes back to the sending executor.
    caf::reacts_to<PatchBatchPtr>,
    // Say that you are alive (to itself).
    caf::reacts_to<tick_atom>>;

/// The TARGET actor goes on with answers on another device than the one that has asked.
using target_actor = caf::typed_actor<
    // A text to complete, lent by the sending stream, to which it is `Returned`; `Explanation` goes to
    // alerts.
    caf::reacts_to<LentTextPtr>,
    // Run the next pass (to itself).
    caf::reacts_to<work_atom>,
    // Say that you are alive, and take back what is past its deadline (to itself).
    caf::reacts_to<tick_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The RECORDER keeps the packets of a camera's input that is recorded and not watched, where EVIDENCE finds
/// them.
using recorder_actor = caf::typed_actor<
    // Do the next piece of work (to itself).
    caf::reacts_to<step_atom>,
    // The camera's pulse is cancelled: close the source and quit.
    caf::reacts_to<stop_atom>>;

/// The EVIDENCE actor cuts clips and stills out of what cameras sent, when all of it has come.
using evidence_actor = caf::typed_actor<
    // A camera's packets are kept there from now on.
    caf::reacts_to<Recording>,
    // A still and a clip are wanted; `EvidenceReport` comes back when they are made, or cannot be.
    caf::reacts_to<EvidenceRequest>,
    // No packet of this camera follows: make now what can be made.
    caf::reacts_to<end_atom, std::string>,
    // Look for what has come, and remove what is too old (to itself).
    caf::reacts_to<tick_atom>,
    // Make the next that is due (to itself).
    caf::reacts_to<work_atom>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// What streams and targets answer to: the alerts actor, or whoever passes answers on to another node's.
using answers_actor = caf::typed_actor<
    // The sending stream starts; it is granted credit in return.
    caf::reacts_to<join_atom>,
    // A window's answers; costs a credit, which is given back at once.
    caf::reacts_to<WindowAnswersPtr>,
    // The text of an answer that it had asked to be explained.
    caf::reacts_to<Explanation>,
    // No window of this camera follows.
    caf::reacts_to<end_atom, std::string>>;

/// The ALERTS actor owns the outbox and the topics. What becomes alerts is sent to it with high priority, so
/// that no number of changes of state delays them.
using alerts_actor = answers_actor::extend<
    // The still and the clip that it had asked for.
    caf::reacts_to<EvidenceReport>,
    // A camera's settings, ahead of the first change of its state that refers to them.
    caf::reacts_to<WatchPtr>,
    // The supervisor has let go of this camera.
    caf::reacts_to<forget_atom, std::string>,
    // Tell it on the camera's status topic.
    caf::reacts_to<StatusChange>,
    // Where a series that was claimed goes on.
    caf::reacts_to<SeriesBooksPtr>,
    // Nobody goes on with this camera, whose end may have come or not.
    caf::reacts_to<removed_atom, std::string>,
    // This process does not have the series of this camera with this fence any more.
    caf::reacts_to<lost_atom, std::string, std::uint64_t>,
    // What waits for its text is told without it.
    caf::reacts_to<force_atom>,
    // Write what has come meanwhile, and publish it (to itself).
    caf::reacts_to<work_atom>,
    // Retry what waits, serve new subscribers (to itself).
    caf::reacts_to<tick_atom>,
    // Publish what there is, and quit.
    caf::reacts_to<stop_atom>>;

/// CLAIMS, in a fleet: gets series of events for this process, before it tells the first one of them.
using claims_actor = caf::typed_actor<
    // The sending alerts actor wants the series of this camera, with this fence, and gets its books or hears
    // that it is lost; without a name, the process's own, whose fence is known here.
    caf::reacts_to<claim_atom, std::string, std::uint64_t>>;

/// Whoever wants to know how a device is.
using device_listener_actor = caf::typed_actor<
    // A device entered a state.
    caf::reacts_to<DeviceReport>>;

/// The DEVICE actor owns one device: its engine, the executor that computes with it, a tower, if patches are
/// encoded beside it, and target, if answers go on elsewhere. When one of them fails it takes down the
/// others, and the engine with them, and makes them again, or gives the device up.
using device_actor = caf::typed_actor<
    // Make the engine again (to itself).
    caf::reacts_to<work_atom>,
    // What is left of the n-th engine had its time to end (to itself).
    caf::reacts_to<giveup_atom, std::uint32_t>,
    // Let its actors end, and quit.
    caf::reacts_to<stop_atom>>;

/// The STATUS actor tells what its process is doing. It owns nothing of the pipeline and waits for none of
/// it.
using status_actor = caf::typed_actor<
    // Whether it lives, has started and is ready; without a page. Answered at once.
    caf::replies_to<probe_atom>::with<StatusReport>,
    // All of it, with a page; answered when that has been made.
    caf::replies_to<status_atom>::with<StatusReport>,
    // Quit.
    caf::reacts_to<stop_atom>>;

/// The SUPERVISOR spawns the pipeline, keeps cameras running, and shuts all down in the order of the
/// pipeline.
using supervisor_actor = device_listener_actor::extend<
    // A camera entered a state.
    caf::reacts_to<CameraReport>,
    // A source could not be opened, or was lost, and its actor quits.
    caf::reacts_to<SourceRest>,
    // The input of a camera that is recorded delivers, or does not any more.
    caf::reacts_to<RecorderReport>,
    // The server of a source answers, or does not (from no actor).
    caf::reacts_to<ReachReport>,
    // Open the sources whose turn it is, if this timer counts (to itself).
    caf::reacts_to<dial_atom, std::uint64_t>,
    // All that this camera sent has gone through the pipeline.
    caf::reacts_to<end_atom, std::string>,
    // Look for cameras that stalled (to itself).
    caf::reacts_to<tick_atom>,
    // Answered with the stages that devices have to do with.
    caf::replies_to<stages_atom>::with<Stages>,
    // These are the cameras now: start, alter, stop or restart what differs.
    caf::reacts_to<reload_atom, CameraList>,
    // Stop all cameras and drain what is under way.
    caf::reacts_to<stop_atom>,
    // End the streams of cameras that do not stop themselves (to itself, within the grace period).
    caf::reacts_to<force_atom>,
    // The grace period is over (to itself).
    caf::reacts_to<giveup_atom>,
    // Answered when all has ended, of itself, by `stop`, or by failing; then the supervisor quits.
    caf::replies_to<wait_atom>::with<DrainReport>>;

struct Stages {
  router_actor router;
  alerts_actor alerts;
};

struct DeviceReport {
  std::string device;
  DeviceState state = DeviceState::up;
  /// Why it is not up.
  std::string reason;
  /// Only of a device that is up: who takes patches there, null without a vision tower, and who takes visual
  /// tokens, null without a language model.
  vision_actor vision;
  tokens_actor tokens = {};
};

struct Route {
  std::string camera;
  /// Empty: nowhere; and who takes patches there.
  std::string device;
  vision_actor vision;
  /// They go there, too, and that one counts for the camera, until this is empty.
  std::string former = {};
  vision_actor former_vision = {};
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, DeviceReport& x) {
  return f(caf::meta::type_name("DeviceReport"), x.device, x.state, at_most(x.state, DeviceState::lost),
           x.reason, x.vision, x.tokens);
}

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, Route& x) {
  return f(caf::meta::type_name("Route"), x.camera, x.device, x.vision, x.former, x.former_vision);
}

}  // namespace vigil::actors
