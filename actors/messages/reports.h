// What actors tell of themselves and of each other, beside the data: states, rests, ends. Plain, and free of
// CAF. `messages.h` says who sends it to whom.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"
#include "config/settings.h"
#include "media/reach.h"

namespace vigil::actors {

/// A camera's actor tells that its camera entered a state.
struct CameraReport {
  std::string camera;
  CameraState state = CameraState::connecting;
  std::string reason;
  /// The camera gave up, and will not try again.
  bool failed = false;
  friend bool operator==(const CameraReport&, const CameraReport&) = default;
};

/// A camera's or a recorder's actor gives its thread back, and quits: its source is to be tried again then.
struct SourceRest {
  std::string camera;
  config::Role role = config::Role::detect;
  base::Clock::TimePoint until;
  /// No file descriptor was left to try it with.
  bool no_descriptor = false;
};

/// A recorder's actor tells whether its input delivers.
struct RecorderReport {
  std::string camera;
  bool recording = false;
  std::string reason;
  friend bool operator==(const RecorderReport&, const RecorderReport&) = default;
};

/// Whether the server of a source answers, of which the supervisor asked under this ticket.
struct ReachReport {
  media::Reach::Answer answer;
};

/// encoded: the model has taken it; dropped: vision could not; lost: no device took it, or the one that had
/// it failed; unknown: its device knows too little of the camera to encode a part of a picture, and wants a
/// whole one.
enum class PatchOutcome : std::uint8_t { encoded, dropped, lost, unknown };

/// How a camera had better choose from now on: what its stream and its device have room and time for.
struct Advice {
  /// Of a picture's groups, those that it had better send of a patch, from 0 to 1: its budget holds no more.
  double share = 1;
  /// Steps by which it prunes less than its settings say (`pruned_less`), since audits call for it.
  int less = 0;
  /// The device is behind with its work (`Backlog`).
  bool is_behind = false;
  friend bool operator==(const Advice&, const Advice&) = default;
};

/// What became of a patch that a camera has sent. It earns the camera a credit, unless it was lost: then that
/// comes back when a device tells what it has room for.
struct PatchAck {
  std::string camera;
  std::uint32_t generation = 0;
  std::uint64_t sequence = 0;
  PatchOutcome outcome = PatchOutcome::encoded;
  /// Why it was not encoded: a word, as the metrics have it.
  std::string reason = {};
  /// Of one that was encoded.
  Advice advice = {};
  friend bool operator==(const PatchAck&, const PatchAck&) = default;
};

inline PatchAck ack_of(const FramePatch& patch, PatchOutcome outcome, std::string reason = {}) {
  return {patch.watch.camera, patch.generation, patch.sequence, outcome, std::move(reason), {}};
}

/// Whoever has the streams of cameras can take the visual tokens of so many more patches of one, in the n-th
/// session of whoever encodes them.
struct TokensRoom {
  std::string camera;
  std::uint32_t session = 0;
  std::uint32_t patches = 0;
  friend bool operator==(const TokensRoom&, const TokensRoom&) = default;
};

/// taken: they are in their stream; late: out of order there; lost: they never came to it.
enum class TokensOutcome : std::uint8_t { taken, late, lost };

/// What became of the visual tokens of a patch, which has its number of the patch.
struct TokensAck {
  std::string camera;
  std::uint32_t generation = 0;
  std::uint64_t sequence = 0;
  TokensOutcome outcome = TokensOutcome::taken;
  /// Of the stream, and of the device that it is on.
  Advice advice = {};
  friend bool operator==(const TokensAck&, const TokensAck&) = default;
};

inline TokensAck ack_of(const VisualPatch& patch, TokensOutcome outcome, const Advice& advice = {}) {
  return {patch.watch.camera, patch.generation, patch.sequence, outcome, advice};
}

/// The supervisor lets a change of a camera's state be told on its status topic.
struct StatusChange {
  WatchRef watch;
  CameraState state = CameraState::connecting;
  std::string reason;
  friend bool operator==(const StatusChange&, const StatusChange&) = default;
};

/// The text of an answer, or that there is none.
struct Explanation {
  std::uint64_t ticket = 0;
  std::string text;
  /// Why there is none; empty if there is.
  std::string failure;
  friend bool operator==(const Explanation&, const Explanation&) = default;
};

/// All cameras that are to be watched from now on.
struct CameraList {
  std::vector<CameraPtr> cameras;
  /// In a fleet, cameras that are gone for good: others that are not in the list anymore go on elsewhere.
  std::vector<std::string> removed = {};
};

/// starting: the model is being loaded; running; draining: no new frame is taken, what is under way is
/// finished.
enum class RunPhase : std::uint8_t { starting, running, draining };

/// What a process, or a node, tells of itself.
struct StatusReport {
  RunPhase phase = RunPhase::starting;
  /// As the probes /healthz, /startupz and /readyz say. Who is ready is running, and alive.
  bool live = false;
  bool started = false;
  bool ready = false;
  /// Who should have said long ago that it is alive, by name.
  std::vector<std::string> late = {};
  /// All of it and the figures, as JSON (docs/status.schema.json); its times are ages. Empty in what a probe
  /// is told.
  std::string page = {};
  friend bool operator==(const StatusReport&, const StatusReport&) = default;
};

/// How a run ended.
struct DrainReport {
  /// Whether everything that was captured went all the way through.
  bool complete = false;
  /// Whether alerts has come to its end, so that what was found is in the outbox.
  bool alerts_kept = false;
  /// A line for each camera that gave up and each actor that failed.
  std::vector<std::string> failures;
  friend bool operator==(const DrainReport&, const DrainReport&) = default;
};

}  // namespace vigil::actors
