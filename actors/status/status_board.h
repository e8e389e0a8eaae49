// What the running process is doing, for probes and for people.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "actors/messages/reports.h"
#include "actors/status/metrics.h"
#include "base/clock.h"

namespace vigil::actors {

/// How long those who wait for disks may be silent: one that hangs for longer does not come back by itself.
constexpr base::Duration kAlertsPatience = std::chrono::seconds(30);
constexpr base::Duration kEvidencePatience = std::chrono::minutes(2);

/// This process's own book: written by its pipeline, read by its status actor. Thread-safe.
class StatusBoard {
 public:
  /// `patience`: with the supervisor.
  explicit StatusBoard(const base::Clock& clock, base::Duration patience = std::chrono::seconds(10));

  void phase(RunPhase phase);
  /// The supervisor is alive.
  void beat();
  /// This one is alive, and says so again within `patience`, or it is late. `vital`: without it there are no
  /// alerts, so that the process is not alive either while it is late.
  void beat(const std::string& name, base::Duration patience, bool vital = true);
  /// It has ended, or nothing depends on it any more.
  void silent(const std::string& name);
  /// A camera entered a state.
  void camera(const WatchSettings& watch, CameraState state, const std::string& reason);
  /// What a person should know of a camera that delivers; it is its reason while it is up. Empty if there is
  /// nothing.
  void remark(const std::string& camera, const std::string& remark);
  void forget(const std::string& camera);
  /// A device entered a state. Without one that is up, no frame is taken; of a run that names none, this is
  /// not known.
  void device(const std::string& device, DeviceState state, const std::string& reason);
  /// Why events cannot be kept; empty if they can.
  void outbox(const std::string& failure);

  /// The process makes progress, or is still starting: nobody is late without whom there are no alerts.
  bool live() const { return report().live; }
  /// Who should have said long ago that it is alive, by name.
  std::vector<std::string> late() const;
  /// It has started.
  bool started() const { return report().started; }
  /// It takes frames and can keep events.
  bool ready() const { return report().ready; }

  /// Of each camera that was told of.
  std::map<std::string, CameraState> cameras() const;

  /// All that a probe is told, as it is at one moment; without a page.
  StatusReport report() const;

  /// All of it and the figures of `metrics`, as JSON:
  ///   {"phase", "live", "late": [name], "ready", "uptime_seconds", "outbox": {"failure", "in_memory",
  ///   "pending"},
  ///    "configuration": {"current"},
  ///    "devices": [{"device", "state", "reason", "since_seconds", "failures"}],
  ///    "cameras": [{"camera", "tenant", "state", "reason", "since_seconds", "fps", "frames", "dropped",
  ///    "reconnects"}], "queues": {actor: waiting}, "windows": {outcome: count}, "alerts", "kv_usage",
  ///    "window_latency_seconds": {"count", "mean", "p50", "p95"}}
  std::string json(const Metrics& metrics) const;

 private:
  struct Camera {
    std::string tenant;
    CameraState state = CameraState::connecting;
    std::string reason;
    base::Clock::TimePoint since;
  };

  struct Device {
    DeviceState state = DeviceState::up;
    std::string reason;
    base::Clock::TimePoint since;
  };

  struct Beat {
    base::Clock::TimePoint last;
    base::Duration patience;
    bool vital = true;
  };

  std::vector<std::string> late_locked(bool vital_only) const;
  bool live_locked() const;
  bool ready_locked() const;

  const base::Clock& clock_;
  const base::Duration patience_;
  const base::Clock::TimePoint begin_;
  mutable std::mutex mutex_;
  RunPhase phase_ = RunPhase::starting;
  std::map<std::string, Beat> beats_;
  std::string outbox_failure_;
  std::map<std::string, Camera> cameras_;
  /// By camera; one may come before its camera's state does.
  std::map<std::string, std::string> remarks_;
  std::map<std::string, Device> devices_;
};

}  // namespace vigil::actors
