// What the running process is doing, for probes and for people.
#pragma once

#include <map>
#include <mutex>
#include <optional>
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

/// A process's place in its fleet, as it knows it.
struct FleetStanding {
  /// Names of the fleet and of this node, and what the node does.
  std::string fleet;
  std::string node;
  std::vector<std::string> roles = {};
  /// What it tells the others: joining, ready, draining; and whether they believe it: joining, member, cut
  /// off, replaced.
  std::string state = "joining";
  std::string membership = "joining";
  bool registry_answers = false;
  /// Of a registry that was restored or replaced: what was noticed last.
  std::string registry_remark = {};
  /// Who plans; empty if nobody does.
  std::string planner = {};
  /// Names the configuration that it runs by; empty if that is not known.
  std::string configuration = {};
  /// It may be given something, or goes on with what it has.
  bool is_ready = false;
  friend bool operator==(const FleetStanding&, const FleetStanding&) = default;
};

/// A camera as its process tells of it.
struct CameraStanding {
  CameraState state = CameraState::connecting;
  std::string reason;
  /// Since it entered that state.
  base::Duration age{0};
};

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
  /// Of a node that is a gateway: why it does not serve; empty if it does.
  void gateway(const std::string& why_not);
  std::string gateway() const;
  /// Of a node that makes events: for whom they wait; empty if they do not.
  void events(const std::string& waits);
  /// This process is a node: it is not ready before its fleet has let it in.
  void fleet(FleetStanding standing);

  /// The process makes progress, or is still starting: nobody is late without whom there are no alerts.
  bool live() const { return report().live; }
  /// Who should have said long ago that it is alive, by name.
  std::vector<std::string> late() const;
  /// It has started.
  bool started() const { return report().started; }
  /// It takes frames, or computes for others, and can keep events.
  bool ready() const { return report().ready; }

  /// Of each camera that was told of.
  std::map<std::string, CameraState> cameras() const;

  /// Those of them that were told of, with what `remark` said of one that is up; by name.
  std::map<std::string, CameraStanding> cameras(const std::vector<std::string>& names) const;
  /// Whether a device is up, or there is none to be.
  bool computes() const;

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
  /// and of a node, "fleet" (`FleetStanding`).
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
  bool computes_locked() const;

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
  std::optional<FleetStanding> fleet_;
  /// Why its gateway does not serve, and for whom its events wait.
  std::string gateway_trouble_, events_wait_;
};

}  // namespace vigil::actors
