// What travels through the pipeline: plain, immutable once shared, and free of CAF. `messages.h` says who
// sends it to whom.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "actors/messages/watch.h"
#include "base/clock.h"
#include "base/duration.h"
#include "base/grid_mask.h"
#include "config/settings.h"
#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/answer.h"
#include "engine/stream/ids.h"
#include "engine/stream/sliding_window.h"
#include "media/media.h"
#include "media/packet_history.h"

namespace vigil::actors {

/// How a process has come by a camera: by its own configuration alone, or from its fleet, whose cameras have
/// one owner after the other.
struct Tenure {
  /// Higher than that of any owner before; 0: of a process that is alone.
  std::uint64_t fence = 0;
  /// Second 0 of its time, which is the same for every owner; nothing: when it is first opened.
  std::optional<base::Clock::WallTime> origin;
  /// Which device computes its stream; empty: whichever this process takes.
  std::string device = {};
  /// Which one goes on answering until the windows of that one are full; empty: none.
  std::string former = {};
  /// Why no device computes it, though its owner keeps it; empty: one does.
  std::string withheld = {};
  /// The former has the same stream: it goes on only until the device is up, and gets nothing beside it.
  bool has_same_stream = false;
  friend bool operator==(const Tenure&, const Tenure&) = default;
};

/// A camera that this process is to watch: all that is set of it, and how it has come by it. It stays where
/// the camera is read: with the supervisor, the camera's actor and its recorder. What others need of it are
/// `WatchSettings`.
struct OwnCamera : config::CameraSettings {
  OwnCamera() = default;
  explicit OwnCamera(config::CameraSettings settings, Tenure how = {})
      : config::CameraSettings(std::move(settings)), tenure(std::move(how)) {}

  Tenure tenure;
  friend bool operator==(const OwnCamera&, const OwnCamera&) = default;
};
using CameraPtr = std::shared_ptr<const OwnCamera>;

/// When a frame was captured, on both clocks; on the steady one, of a file that is paced, when it was due,
/// which a process that is too busy hears a little later.
struct CaptureTime {
  base::Clock::TimePoint steady;
  base::Clock::WallTime wall;
};

/// From when to when something was computed.
struct WorkSpan {
  base::Clock::TimePoint begin;
  base::Clock::TimePoint end;
};

/// One temporal patch of a camera: the frames that the vision tower folds into one. Time is the camera's:
/// seconds since its first frame, never decreasing, over loops of a file and reconnections.
struct FramePatch {
  /// The settings by which it was begun, so that an answer can never be taken for another camera's, and
  /// settings change between two patches, never within one.
  WatchRef watch;
  /// At least one, at most `frames_per_patch`, oldest first.
  std::vector<media::SampledFrame> frames;
  /// The groups of the frames that are to be encoded; absent: all.
  std::optional<base::GridMask> encoded;
  /// Those that the stream keeps a token of, which the tower may have made of earlier frames; absent: those
  /// that are encoded.
  std::optional<base::GridMask> kept;
  /// The groups whose pixels are there; absent: all. Others are black.
  std::optional<base::GridMask> pixels;
  /// Of all groups, the few that differ most from what is usual there; absent: nobody said.
  std::optional<base::GridMask> standing_out;
  /// When the audited window ends that it may belong to, in the camera's time: tokens of all its groups are
  /// made, too, for the audit alone.
  std::optional<double> audit;
  double seconds = 0;
  double duration = 0;
  /// 0, 1, 2, … over what this incarnation of the camera sent.
  std::uint64_t sequence = 0;
  /// Counts the incarnations of the camera's actor: what one that failed still had under way earns its
  /// successor no credit.
  std::uint32_t generation = 0;
  /// Of the last frame.
  CaptureTime captured;
};
using FramePatchPtr = std::shared_ptr<const FramePatch>;

/// The visual tokens of one temporal patch.
struct VisualPatch {
  WatchRef watch;
  model::VisualTokensPtr tokens;
  /// Frames that were captured for it.
  int frames = 0;
  CaptureTime captured;
  /// The pass of the vision tower that made it.
  WorkSpan encoded;
  /// As `FramePatch::audit`; and the tokens of all its groups, seen by themselves, null if the device had no
  /// time or no room for them.
  std::optional<double> audit = std::nullopt;
  model::VisualTokensPtr whole = nullptr;
  /// As `FramePatch`.
  std::uint32_t generation = 0;
  std::uint64_t sequence = 0;
};
using VisualPatchPtr = std::shared_ptr<const VisualPatch>;

/// The answers to all rules of a camera about one window.
struct WindowAnswers {
  /// With which it was asked.
  WatchPtr watch;
  /// In camera time.
  double start = 0;
  double end = 0;
  base::Clock::WallTime start_wall;
  base::Clock::WallTime end_wall;
  int frames = 0;
  /// answers[i] belongs to watch->rules[i]. How likely "Yes" is holds; a text is there only once the answer
  /// has been explained.
  std::vector<stream::Answer> answers;
  /// Of the window's last frame.
  CaptureTime captured;
  /// Of the window's last patch.
  WorkSpan encoded;
  /// By which answers can be explained, for `kExplanationPatience`; nothing when none will be.
  std::optional<stream::WindowId> id;
};
using WindowAnswersPtr = std::shared_ptr<const WindowAnswers>;

/// How long an alert waits for its explanation, and a device keeps what that takes.
constexpr base::Duration kExplanationPatience = std::chrono::seconds(10);

/// Of measurements; each is called in the thread that computes, and may be empty.
struct PipelineObserver {
  /// A window was answered; from when its first pass began until then.
  std::function<void(const WindowAnswers& window, const WorkSpan& asked)> window;
  /// A piece of a device's work was done: "vision" a batch of patches, "language" a pass of windows and
  /// texts.
  std::function<void(const char* stage, const WorkSpan& piece)> piece;
};

/// Asks for the text of an answer: the rule of this place of the window's camera.
struct Explain {
  stream::WindowId window;
  std::uint32_t rule = 0;
  /// The asker's name for this request.
  std::uint64_t ticket = 0;
  friend bool operator==(const Explain&, const Explain&) = default;
};

/// No other answer of the window will be explained.
struct Done {
  stream::WindowId window;
  friend bool operator==(const Done&, const Done&) = default;
};

/// The text of this answer, which another device went on with, came to its end there.
struct Returned {
  stream::WindowId window;
  std::uint32_t rule = 0;
  friend bool operator==(const Returned&, const Returned&) = default;
};

/// none: it is switched off; pending: the clip is being made; ready: still and clip can be fetched; failed:
/// there will be no clip.
enum class EvidenceState : std::uint8_t { none, pending, ready, failed };

constexpr const char* name_of(EvidenceState state) {
  switch (state) {
    case EvidenceState::none:
      return "none";
    case EvidenceState::pending:
      return "pending";
    case EvidenceState::ready:
      return "ready";
    case EvidenceState::failed:
      return "failed";
  }
  return "?";
}

/// What shows that an alert is true.
struct Evidence {
  EvidenceState state = EvidenceState::none;
  /// Where the still and the clip are, within the evidence's folder; empty while they are not.
  std::string thumb = {};
  std::string clip = {};
  /// Why there is no clip, if it failed, or no still.
  std::string reason = {};
  /// When what the still shows was seen.
  std::optional<base::Clock::WallTime> thumb_time = {};
  /// Of the clip: what it shows, how large its file is, and in which codec it came.
  base::Clock::WallTime from = {};
  base::Clock::WallTime to = {};
  std::uintmax_t bytes = 0;
  std::string codec = {};
  friend bool operator==(const Evidence&, const Evidence&) = default;
};

/// Asks for the still and the clip of an episode.
struct EvidenceRequest {
  std::string camera;
  /// Whose it is.
  std::string tenant;
  std::string rule;
  std::string episode;
  /// In camera time: what the clip has to show, and what the still.
  media::Span span;
  /// The still's moment on the wall.
  base::Clock::WallTime moment;
};

/// The still and the clip of an episode, or why there is none.
struct EvidenceReport {
  std::string episode;
  Evidence evidence;
  friend bool operator==(const EvidenceReport&, const EvidenceReport&) = default;
};

/// Where the packets of a camera are kept, with times of the camera.
struct Recording {
  std::string camera;
  std::shared_ptr<media::PacketHistory> history;
};

/// connecting: being opened; up: delivers; stalled: open, but silent; down: cannot be reached, has ended, or
/// is not watched since its device failed.
enum class CameraState : std::uint8_t { connecting, up, stalled, down };

constexpr std::string_view name_of(CameraState state) {
  switch (state) {
    case CameraState::connecting:
      return "connecting";
    case CameraState::up:
      return "up";
    case CameraState::stalled:
      return "stalled";
    case CameraState::down:
      return "down";
  }
  return "?";
}

/// up: its engine computes; restarting: its engine failed, and is made again; lost: nothing computes there
/// any more as long as this process lives.
enum class DeviceState : std::uint8_t { up, restarting, lost };

constexpr std::string_view name_of(DeviceState state) {
  switch (state) {
    case DeviceState::up:
      return "up";
    case DeviceState::restarting:
      return "restarting";
    case DeviceState::lost:
      return "lost";
  }
  return "?";
}

/// Seconds that one temporal patch covers.
double patch_duration(const WatchSettings& watch, int frames_per_patch);

/// Patches of so much of a camera's stream, rounded up, at least 1.
int patches_in(const WatchSettings& watch, base::Duration time, int frames_per_patch);

/// A camera's windows, whose frames may be early by half an interval.
stream::SlidingWindow::Shape window_shape(const WatchSettings& watch);

/// "alert/<tenant>/<camera>/<rule>/"; the last delimiter keeps one rule's topic from being a prefix of
/// another's.
std::string alert_topic(const WatchSettings& watch, const config::RuleSettings& rule);

/// Where a rule's alerts go: its own topic, then "topic/<name>/<tenant>/<camera>/<rule>/" for each that it
/// names.
std::vector<std::string> alert_topics(const WatchSettings& watch, const config::RuleSettings& rule);

/// "status/<tenant>/<camera>/".
std::string status_topic(const WatchSettings& watch);

/// "process/<name>/": what a process tells of itself.
std::string process_topic(std::string_view process);

}  // namespace vigil::actors
