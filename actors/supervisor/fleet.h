// The cameras of a run: their states, which to restart when, which come and go, and what is still under way.
// Without actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/camera/backoff.h"
#include "actors/camera/pulse.h"
#include "actors/messages/data.h"
#include "config/clock.h"

namespace vigil::actors {

/// Not thread-safe.
class Fleet {
 public:
  using TimePoint = config::Clock::TimePoint;

  struct Change {
    CameraPtr camera;
    CameraState state = CameraState::connecting;
    std::string reason;
    /// The camera was asked to end, so that being down is no trouble.
    bool leaving = false;
  };

  Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed);

  const std::shared_ptr<Pulse>& pulse(const std::string& camera) const { return find(camera).pulse; }
  CameraPtr settings(const std::string& camera) const { return find(camera).camera; }

  /// The camera's actor runs, in its n-th incarnation from 0.
  std::uint32_t started(const std::string& camera);

  /// The camera entered a state by its own account. Nothing if that is no change, or the camera is gone.
  std::optional<Change> report(const std::string& camera, CameraState state, const std::string& reason);

  /// Nothing watches the camera, whatever it says of itself: it is shown as down, unless it is for a reason
  /// of its own. Then something does again.
  std::optional<Change> unwatched(const std::string& camera, const std::string& reason);
  std::optional<Change> watched(const std::string& camera, const std::string& where);

  /// The camera gave up.
  void gave_up(const std::string& camera, const std::string& reason);

  /// The camera's actor is gone. `failed`: not by its own will; then it is due for a restart after a growing
  /// wait.
  std::optional<Change> lost(const std::string& camera, bool failed, TimePoint now);

  /// All that the camera sent has gone through the pipeline.
  void ended(const std::string& camera);

  /// What a new list of cameras asks for. Each camera is in one list at most, and none is in any that stays
  /// as it is, even if its file has been played to its end.
  struct Plan {
    /// To be started: they are new.
    std::vector<std::string> start;
    /// Their rules or labels are others; the stream goes on.
    std::vector<CameraPtr> alter;
    /// Their actors are to be stopped: they are gone from the list, or get another stream.
    std::vector<std::string> stop;
    /// As `stop`, but without an actor that could: their streams have to be ended for them.
    std::vector<CameraPtr> end;
  };
  Plan reload(const std::vector<CameraPtr>& cameras);

  /// Cameras of `stop` and `end` that have ended since the last call: gone for good, or to be started with
  /// their new settings.
  struct Departed {
    std::vector<std::string> gone;
    std::vector<std::string> start;
  };
  Departed departed();

  /// Cameras that have waited for their source for too long, and those that deliver again.
  std::vector<Change> watch(TimePoint now);

  /// Cameras to be restarted now.
  std::vector<std::string> due(TimePoint now);

  /// No camera is restarted any more.
  void stop();
  bool stopping() const { return stopping_; }

  /// Cameras that have not ended, and those that are about to start again.
  std::vector<CameraPtr> remaining() const;
  /// Cameras that have neither an actor nor ended nor wait for a restart: their streams have to be ended for
  /// them.
  std::vector<CameraPtr> orphans() const;

  const std::vector<std::string>& failures() const { return failures_; }
  void fail(std::string what) { failures_.push_back(std::move(what)); }

 private:
  struct Camera {
    CameraPtr camera;
    std::shared_ptr<Pulse> pulse = std::make_shared<Pulse>();
    std::optional<CameraState> state;
    std::string reason;
    /// What it said last of itself, while it is shown as stalled or unwatched.
    CameraState own_state = CameraState::connecting;
    std::string own_reason;
    /// Why nothing watches it; empty if something does.
    std::string unwatched;
    std::uint32_t generations = 0;
    bool running = false;
    bool ended = false;
    /// It was asked to end; afterwards it is gone, or starts with the settings of `next`.
    bool leaving = false;
    CameraPtr next;
    Backoff backoff;
    std::optional<TimePoint> restart_at;
  };

  Camera make(CameraPtr camera, std::uint32_t generations);
  void leave(Camera& camera, CameraPtr next, Plan& plan);
  const Camera& find(const std::string& camera) const { return cameras_.at(camera); }
  std::optional<Change> say(Camera& camera, CameraState state, const std::string& reason);
  std::optional<Change> show(Camera& camera);
  std::optional<Change> enter(Camera& camera, CameraState state, const std::string& reason);

  std::map<std::string, Camera> cameras_;
  std::vector<std::string> failures_;
  std::uint64_t seed_;
  bool stopping_ = false;
};

}  // namespace vigil::actors
