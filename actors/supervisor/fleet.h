// The cameras of a run: their states, which come and go, and what is still under way. Without actors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "actors/camera/backoff.h"
#include "actors/camera/pulse.h"
#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/supervisor/dialer.h"
#include "base/clock.h"

namespace vigil::actors {

/// Not thread-safe.
class Fleet {
 public:
  using TimePoint = base::Clock::TimePoint;

  struct Change {
    WatchPtr watch;
    /// No change before it was of these settings.
    bool first_of_them = false;
    CameraState state = CameraState::connecting;
    std::string reason;
    /// The camera was asked to end, so that being down is no trouble.
    bool leaving = false;
    /// It is up, and was down or stalled since it was last.
    bool recovered = false;
    /// Of one that is leaving: it starts again here, with other settings.
    bool returns = false;
  };

  Fleet(const std::vector<CameraPtr>& cameras, std::uint64_t seed);

  const std::shared_ptr<Pulse>& pulse(const std::string& camera) const { return find(camera).pulse; }
  CameraPtr settings(const std::string& camera) const { return find(camera).camera; }
  /// What the pipeline has to know of it, in the version that each change of its settings makes anew.
  WatchPtr watch_settings(const std::string& camera) const { return find(camera).watch; }
  /// Of the attempts to open its source. Whoever tries uses it: an actor of the camera, or, while it has
  /// none, others.
  const std::shared_ptr<Backoff>& backoff(const std::string& camera) const { return find(camera).backoff; }
  /// Whether it was told that it is down and has not delivered since.
  bool retrying(const std::string& camera) const { return find(camera).own_state == CameraState::down; }

  /// The camera's actor runs, in its n-th incarnation from 0.
  std::uint32_t started(const std::string& camera);

  /// The camera entered a state by its own account. Nothing if that is no change, or the camera is gone.
  std::optional<Change> report(const std::string& camera, CameraState state, const std::string& reason);

  /// Nothing watches the camera, whatever it says of itself: it is shown as down, unless it is for a reason
  /// of its own. Then something does again.
  std::optional<Change> unwatched(const std::string& camera, const std::string& reason);
  std::optional<Change> watched(const std::string& camera, const std::string& where);
  /// Nothing watches it yet, and something may soon: it is unwatched if it is not `watched` until then.
  std::optional<Change> awaits(const std::string& camera, const std::string& reason, TimePoint until);

  /// The camera gave up.
  void gave_up(const std::string& camera, const std::string& reason);

  /// Its source could not be reached, which nobody's actor tried.
  struct Unreachable {
    TimePoint again;
    std::optional<Change> change;
  };
  Unreachable unreachable(const std::string& camera, const std::string& reason, TimePoint now);

  /// The camera's actor gives its source back. What comes of it is decided when the actor has ended, since
  /// there must not be two.
  void rests(const SourceRest& rest) { cameras_.at(rest.camera).rest = rest; }

  /// The camera's actor is gone. `failed`: not by its own will; then the camera is to be started again, after
  /// a growing wait.
  struct Loss {
    std::optional<Change> change;
    SourceEnd source;
    /// It does not start again, and its stream is not at its end: that may have to be ended for it, also if
    /// its actor has done so, since the stream may have moved meanwhile.
    bool orphaned = false;
  };
  Loss lost(const std::string& camera, bool failed, TimePoint now);
  /// When a camera without an actor is to be started, if it is to be.
  std::optional<TimePoint> start_at(const std::string& camera) const { return find(camera).start_at; }

  /// All that the camera sent has gone through the pipeline. Whether it was not asked to end: a file is at
  /// its end.
  bool ended(const std::string& camera);

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
    std::vector<WatchPtr> end;
  };
  Plan reload(const std::vector<CameraPtr>& cameras);

  /// Cameras that were asked to end, and of which something may still be on its way through the pipeline.
  std::vector<std::string> leaving() const;

  /// Cameras of `stop` and `end` that have ended since the last call: gone for good, or to be started with
  /// their new settings.
  struct Departed {
    std::vector<std::string> gone;
    std::vector<std::string> start;
  };
  Departed departed();

  /// Cameras that have waited for their source, or for who watches them, for too long, and those that deliver
  /// again.
  std::vector<Change> watch(TimePoint now);

  /// No camera is started any more.
  void stop();

  /// Cameras that have not ended, and those that are about to start again.
  std::vector<WatchPtr> remaining() const;
  /// Whether there is none.
  bool all_ended() const;
  /// Cameras that have neither an actor nor ended nor wait for a start: their streams have to be ended for
  /// them.
  std::vector<WatchPtr> orphans() const;

  const std::vector<std::string>& failures() const { return failures_; }
  void fail(std::string what) { failures_.push_back(std::move(what)); }

 private:
  struct Camera {
    CameraPtr camera;
    WatchPtr watch;
    std::shared_ptr<Pulse> pulse = std::make_shared<Pulse>();
    std::optional<CameraState> state;
    std::string reason;
    /// The version of the last change.
    std::uint64_t told_version = 0;
    /// Down or stalled since it was last up.
    bool troubled = false;
    /// What it said last of itself, while it is shown as stalled or unwatched.
    CameraState own_state = CameraState::connecting;
    std::string own_reason;
    /// Why nothing watches it; empty if something does.
    std::string unwatched;
    std::uint32_t generations = 0;
    bool running = false;
    /// It has had an actor, so that something of it may be under way.
    bool begun = false;
    bool ended = false;
    /// It was asked to end; afterwards it is gone, or starts with the settings of `next`.
    bool leaving = false;
    CameraPtr next;
    std::shared_ptr<Backoff> backoff;
    std::optional<TimePoint> start_at;
    /// Of its actor, which has not ended yet.
    std::optional<SourceRest> rest = {};
    /// Why nothing watches it yet, and how long that is no news; empty otherwise.
    std::string awaited = {};
    TimePoint awaited_until = {};
  };

  /// The last version of a camera, by the fence of its owner (`version_of`).
  struct Version {
    std::uint64_t fence = 0;
    std::uint64_t change = 0;
  };

  Camera make(CameraPtr camera, std::uint32_t generations);
  WatchPtr next_version(const CameraPtr& camera);
  void leave_behind(const Version& version);
  void end(Camera& camera);
  void leave(Camera& camera, CameraPtr next, Plan& plan);
  const Camera& find(const std::string& camera) const { return cameras_.at(camera); }
  std::optional<Change> say(Camera& camera, CameraState state, const std::string& reason);
  std::optional<Change> show(Camera& camera);
  std::optional<Change> enter(Camera& camera, CameraState state, const std::string& reason);

  std::map<std::string, Camera> cameras_;
  /// Names of those that were asked to end.
  std::set<std::string> leaving_;
  std::size_t ended_ = 0;
  std::map<std::string, Version> versions_;
  /// The highest of each of those that are no more: whoever comes back by such a fence has no version that he
  /// had before. Later fences, as all owners of a fleet have, begin anew.
  Version past_;
  std::vector<std::string> failures_;
  std::uint64_t seed_;
  bool stopping_ = false;
};

}  // namespace vigil::actors
