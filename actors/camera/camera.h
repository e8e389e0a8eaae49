// A camera, without actors: reads its source, keeps its time, folds frames into temporal patches, sends
// within its credit, reconnects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/camera/backoff.h"
#include "actors/camera/patch_choice.h"
#include "actors/camera/pulse.h"
#include "actors/messages/data.h"
#include "base/clock.h"
#include "media/media.h"
#include "media/packet_history.h"

namespace vigil::actors {

/// Opens a source; `media::VideoReader::open`, or a scripted one in tests. Throws media::Error.
using ReaderFactory = std::function<std::unique_ptr<media::VideoReader>(const std::string& url,
                                                                        const media::ReadOptions& options)>;

/// How the vision tower wants its frames.
struct FrameShape {
  int frames_per_patch = 2;
  /// Empty: frames keep the source's size.
  media::SizePolicy size;
  /// How it cuts them.
  prune::PatchGrid grid = {};
};

/// Told of what happens, in the camera's own thread.
class CameraListener {
 public:
  virtual ~CameraListener() = default;
  virtual void on_state(CameraState state, const std::string& reason) = 0;
  virtual void on_frame() = 0;
  /// `reason`: "no_credit", or "ahead" of the clock.
  virtual void on_dropped(std::uint64_t frames, const char* reason) = 0;
  virtual void on_reconnect() = 0;
  virtual void on_damaged_packets(std::uint64_t packets) = 0;
};

struct CameraOptions {
  CameraPtr camera;
  /// What the pipeline has to know of it.
  WatchPtr watch;
  FrameShape shape;
  /// Play a file once, and give up at once if it cannot be read.
  bool once = false;
  std::uint32_t generation = 0;
  /// Of the jitter.
  std::uint64_t seed = 0;
  /// Of its attempts, shared with the incarnations before and after it, of which one at a time uses it. Null:
  /// its own.
  std::shared_ptr<Backoff> backoff = nullptr;
  /// The one before it was lost, or could not be reached, and this was told.
  bool retrying = false;
  /// Where its packets are kept, in the camera's time; null if they are not.
  std::shared_ptr<media::PacketHistory> history = nullptr;
  /// Something remembers what cameras saw: of one that is kept for any time, patches say what stands out.
  bool remembers = false;
};

/// What to do after a step.
struct CameraStep {
  enum class Next : std::uint8_t {
    again,     ///< call `step` again
    wait,      ///< call `step` again at `until`
    rest,      ///< as `wait`: its source is closed until then, so that no thread has to wait for it
    credit,    ///< call `step` again after `grant`
    finished,  ///< nothing will come any more
  };
  Next next = Next::again;
  base::Clock::TimePoint until;
  /// To be sent, if not null; a credit was spent on it.
  FramePatchPtr patch;
  /// Why it rests: no file descriptor was left, which says nothing of the camera.
  bool no_descriptor = false;
};

/// Not thread-safe. A step blocks as long as its source does, and no longer.
class Camera {
 public:
  /// The clock, the listener and the pulse have to outlive the camera.
  Camera(CameraOptions options, ReaderFactory open, const base::Clock& clock, Pulse& pulse,
         CameraListener& listener);

  /// Credits to send so many more patches. Without enough credit for a stride, a live camera and a paced file
  /// drop it whole, as the gap would spoil it anyway; a file that is played as fast as possible waits.
  void grant(std::uint32_t credits) { credits_ += credits; }

  /// What became of a patch that it has sent: a credit comes back, unless the patch was lost.
  void acknowledge(const PatchAck& ack);

  /// Nobody has seen anything of it: the next patch is whole.
  void show_all() { choice_.missed(); }

  /// What it has sent, and what became of that.
  const PatchChoice::Counts& sent() const { return choice_.counts(); }

  /// Other rules or labels; the stream is the same. Patches that are begun from now on carry them.
  void alter(CameraPtr camera, WatchPtr watch);

  CameraStep step();

  /// Closes the source; what was begun of a patch is delivered by one last step.
  void stop() { stopping_ = true; }

  CameraState state() const { return state_; }
  /// Why the camera finished, if it did so by failing.
  const std::optional<std::string>& failure() const { return failure_; }

 private:
  using TimePoint = base::Clock::TimePoint;

  CameraStep connect();
  CameraStep read();
  CameraStep accept(media::SampledFrame frame, TimePoint due);
  CameraStep end_of_source();
  CameraStep lose(const media::Error& error);
  CameraStep fail(const std::string& reason, media::Error::Kind kind = media::Error::Kind::source);
  CameraStep finish();
  void close();
  void enter(CameraState state, const std::string& reason);
  void continue_time();
  bool catch_up(double seconds);
  bool is_ahead(double seconds);
  base::Clock::WallTime wall_behind_last_patch() const;
  FramePatchPtr take_patch();
  bool has_credit_for_stride(double seconds);
  /// What its settings say of pruning, as of now.
  std::unique_ptr<prune::PruningPolicy> pruning() const;
  bool is_remembered() const { return options_.remembers && options_.watch->keep > base::Duration::zero(); }
  prune::AnchorClock anchors() const { return anchors_of(*options_.camera, patch_seconds()); }
  double patch_seconds() const { return patch_duration(*options_.watch, options_.shape.frames_per_patch); }
  double window_seconds() const {
    return std::chrono::duration<double>(options_.camera->stream.window.length).count();
  }
  double frame_interval() const { return 1.0 / options_.camera->stream.fps; }

  CameraOptions options_;
  ReaderFactory open_;
  const base::Clock& clock_;
  Pulse& pulse_;
  CameraListener& listener_;
  std::shared_ptr<Backoff> backoff_;
  /// Whether frames wait for their time: of a file, and of a recording that a server sends as fast as it can.
  bool paced_;
  bool lossless_;

  std::unique_ptr<media::VideoReader> reader_;
  CameraState state_ = CameraState::down;
  /// Of the state.
  std::string reason_;
  bool stopping_ = false;
  bool finished_ = false;
  std::optional<std::string> failure_;
  TimePoint retry_at_{};
  /// It was lost, and has not delivered since.
  bool retrying_ = false;

  /// Camera time 0 and the wall time then; set when the first source opens.
  std::optional<TimePoint> epoch_;
  base::Clock::WallTime epoch_wall_;
  /// Camera time of the source's second 0, and when that is due.
  double offset_ = 0;
  TimePoint offset_due_{};
  bool continues_ = false;
  double position_ = -1;
  /// Its time was set back to the clock's, and has not come to what was sent before.
  bool set_back_ = false;
  /// Of the last patch.
  base::Clock::WallTime last_wall_{};
  bool delivered_ = false;
  std::uint64_t reported_damage_ = 0;

  /// A frame that is not due yet.
  struct Held {
    media::SampledFrame frame;
    TimePoint due;
    /// Whether the listener has been told of it.
    bool counted;
  };
  std::optional<Held> held_;
  /// Begun; its credit is already spent.
  std::shared_ptr<FramePatch> patch_;
  PatchChoice choice_;
  std::uint32_t credits_ = 0;
  std::uint64_t sequence_ = 0;
  std::int64_t stride_ = -1;
  bool dropping_ = false;
};

}  // namespace vigil::actors
