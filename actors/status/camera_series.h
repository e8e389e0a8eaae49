// The figures of each camera, as series of Prometheus and as numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>

#include "actors/messages/data.h"
#include "base/clock.h"

namespace vigil::actors {

/// What has been counted of a camera since it was added.
struct CameraFigures {
  double fps = 0;
  std::uint64_t frames = 0;
  std::uint64_t dropped = 0;
  std::uint64_t reconnects = 0;
};

/// Every counter of a camera is there, at 0, from when the camera is added, and is gone when the camera is.
/// What comes of a camera that was not added counts for none. Thread-safe.
class CameraSeries {
 public:
  /// `each`: a series for each camera, with the labels `camera` and `tenant`; otherwise the counters are of
  /// all cameras together and have neither.
  CameraSeries(prometheus::Registry& registry, bool each);

  /// Again, if its labels or its rules are others now.
  void add(const WatchSettings& watch);
  void remove(const std::string& camera);

  void state(const std::string& camera, CameraState state);
  void fps(const std::string& camera, double fps);
  void recording(const std::string& camera, bool recording);
  void reconnected(const std::string& camera);
  void damaged(const std::string& camera, std::uint64_t packets);
  void frame(const std::string& camera, std::optional<base::Clock::WallTime> at);
  void dropped(const std::string& camera, const std::string& reason, std::uint64_t frames);
  /// As Metrics::camera_budget.
  void budget(const std::string& camera, std::optional<double> usage, std::uint64_t forgotten);
  /// As of Metrics.
  void audited(const std::string& camera, const std::string& rule, bool agrees, double difference);
  void pruned_less(const std::string& camera, int steps);
  /// `topic`: alert/TENANT/CAMERA/RULE/.
  void alert(const std::string& topic, const std::string& severity);

  std::map<std::string, CameraFigures> figures() const;

 private:
  using Counter = prometheus::Counter;
  using Gauge = prometheus::Gauge;
  struct Families;
  /// Null until there is something to show.
  struct Gauges {
    Gauge* up = nullptr;
    Gauge* fps = nullptr;
    Gauge* recording = nullptr;
    Gauge* last_frame = nullptr;
    Gauge* budget = nullptr;
    Gauge* pruned_less = nullptr;
    std::map<CameraState, Gauge*> states;
  };
  /// Of a rule.
  struct Audits {
    Counter* agree = nullptr;
    Counter* differ = nullptr;
    Counter* difference = nullptr;
  };
  struct Camera {
    std::string tenant;
    std::optional<CameraState> state;
    std::optional<double> fps = {};
    std::optional<double> recording = {};
    std::optional<double> last_frame = {};
    std::optional<double> budget = {};
    std::optional<double> pruned_less = {};
    CameraFigures figures;
    Counter* frames = nullptr;
    Counter* reconnects = nullptr;
    Counter* damaged = nullptr;
    Counter* forgotten = nullptr;
    std::map<std::string, Counter*> dropped;
    Gauges gauges;
    /// By topic and severity.
    std::map<std::pair<std::string, std::string>, Counter*> alerts;
    /// By rule.
    std::map<std::string, Audits> audits;
    /// Takes away its series, those of rules left out.
    std::vector<std::function<void()>> removals;
  };

  prometheus::Labels labels(const std::string& name, const Camera& camera) const;
  template <class Family>
  auto& series(Family& family, Camera& camera, const prometheus::Labels& labels);
  void declare(const std::string& name, Camera& camera);
  void declare_alerts(const WatchSettings& watch, Camera& camera);
  void declare_audits(const WatchSettings& watch, Camera& camera);
  void take_away(const Audits& audits);
  /// Sets the gauges to what is known.
  void show(const std::string& name, Camera& camera);
  void take_away(Camera& camera);
  Counter& dropped_counter(const std::string& name, Camera& camera, const std::string& reason);
  void count_state(std::optional<CameraState> left, std::optional<CameraState> entered);
  Camera* find(const std::string& name);

  const bool each_;
  std::shared_ptr<Families> families_;
  mutable std::mutex mutex_;
  std::map<std::string, Camera> cameras_;
};

}  // namespace vigil::actors
