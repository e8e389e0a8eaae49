// The cameras of a run: their states, which to restart when, and what is still under way. Without actors.
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
  };

  Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed);

  const std::shared_ptr<Pulse>& pulse(const std::string& camera) const { return find(camera).pulse; }
  CameraPtr settings(const std::string& camera) const { return find(camera).camera; }

  /// The camera's actor runs, in its n-th incarnation from 0.
  std::uint32_t started(const std::string& camera);

  /// The camera entered a state by its own account. Nothing if that is no change.
  std::optional<Change> report(const std::string& camera, CameraState state, const std::string& reason);

  /// The camera gave up.
  void gave_up(const std::string& camera, const std::string& reason);

  /// The camera's actor is gone. `failed`: not by its own will; then it is due for a restart after a growing
  /// wait.
  std::optional<Change> lost(const std::string& camera, bool failed, TimePoint now);

  /// All that the camera sent has gone through the pipeline.
  void ended(const std::string& camera);

  /// Cameras that have waited for their source for too long, and those that deliver again.
  std::vector<Change> watch(TimePoint now);

  /// Cameras to be restarted now.
  std::vector<std::string> due(TimePoint now);

  /// No camera is restarted any more.
  void stop();
  bool stopping() const { return stopping_; }

  /// Cameras that have not ended.
  std::vector<CameraPtr> remaining() const;
  /// Cameras that have neither an actor nor ended: their streams have to be ended for them.
  std::vector<CameraPtr> orphans() const;

  const std::vector<std::string>& failures() const { return failures_; }
  void fail(std::string what) { failures_.push_back(std::move(what)); }

 private:
  struct Camera {
    CameraPtr camera;
    std::shared_ptr<Pulse> pulse = std::make_shared<Pulse>();
    std::optional<CameraState> state;
    std::string reason;
    /// What it said last of itself, while it is shown as stalled.
    CameraState own_state = CameraState::connecting;
    std::uint32_t generations = 0;
    bool running = false;
    bool ended = false;
    Backoff backoff;
    std::optional<TimePoint> restart_at;
  };

  const Camera& find(const std::string& camera) const { return cameras_.at(camera); }
  std::optional<Change> enter(Camera& camera, CameraState state, const std::string& reason);

  std::map<std::string, Camera> cameras_;
  std::vector<std::string> failures_;
  bool stopping_ = false;
};

}  // namespace vigil::actors
