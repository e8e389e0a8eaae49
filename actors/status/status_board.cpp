#include "actors/status/status_board.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <prometheus/metric_family.h>

#include "base/json_line.h"

namespace vigil::actors {
namespace {

using nlohmann::json;

double seconds(std::chrono::duration<double> duration) {
  return duration.count();
}

const char* name_of(RunPhase phase) {
  switch (phase) {
    case RunPhase::starting:
      return "starting";
    case RunPhase::running:
      return "running";
    case RunPhase::draining:
      return "draining";
  }
  return "?";
}

std::string label(const prometheus::ClientMetric& metric, const std::string& name) {
  for (const auto& each : metric.label)
    if (each.name == name) return each.value;
  return {};
}

double value_of(const prometheus::ClientMetric& metric, prometheus::MetricType type) {
  return type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value;
}

/// The value below which a share of the observations lies, between the bounds of its bucket; null without
/// observations, and the last bound for what lies beyond it.
json quantile(const prometheus::ClientMetric::Histogram& histogram, double share) {
  if (histogram.sample_count == 0) return nullptr;
  const double wanted = share * static_cast<double>(histogram.sample_count);
  double below = 0;
  double bound = 0;
  for (const auto& bucket : histogram.bucket) {
    const auto count = static_cast<double>(bucket.cumulative_count);
    if (count >= wanted) {
      if (std::isinf(bucket.upper_bound)) return bound;
      return bound + (bucket.upper_bound - bound) * (count > below ? (wanted - below) / (count - below) : 1);
    }
    below = count;
    bound = bucket.upper_bound;
  }
  return bound;
}

json json_of(const FleetStanding& fleet) {
  return {{"name", fleet.fleet},
          {"node", fleet.node},
          {"roles", fleet.roles},
          {"state", fleet.state},
          {"membership", fleet.membership},
          {"registry", {{"answers", fleet.registry_answers}, {"remark", fleet.registry_remark}}},
          {"planner", fleet.planner},
          {"configuration", fleet.configuration}};
}

/// The process's own figures, by name.
class Figures {
 public:
  explicit Figures(const Metrics& metrics) : families_(metrics.registry()->Collect()) {}

  void each(const std::string& name,
            const std::function<void(const prometheus::ClientMetric&, double)>& visit) const {
    for (const auto& family : families_)
      if (family.name == name)
        for (const auto& metric : family.metric) visit(metric, value_of(metric, family.type));
  }

  /// The sum over all metrics of this name, of one camera (or what else the label says) if it is named.
  double sum(const std::string& name, const std::string& of = {},
             const std::string& label_name = "camera") const {
    double sum = 0;
    each(name, [&](const auto& metric, double value) {
      if (of.empty() || label(metric, label_name) == of) sum += value;
    });
    return sum;
  }

  /// The mean over all metrics of this name; 0 without any.
  double mean(const std::string& name) const {
    double count = 0;
    each(name, [&](const auto&, double) { ++count; });
    return count > 0 ? sum(name) / count : 0;
  }

  /// The sums by a label.
  json by(const std::string& name, const std::string& label_name) const {
    json result = json::object();
    each(name, [&](const auto& metric, double value) {
      json& of_label = result[label(metric, label_name)];
      of_label = of_label.is_null() ? value : of_label.get<double>() + value;
    });
    return result;
  }

 private:
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace

StatusBoard::StatusBoard(const base::Clock& clock, base::Duration patience)
    : clock_(clock), patience_(patience), begin_(clock.now()) {}

void StatusBoard::phase(RunPhase phase) {
  {
    const std::lock_guard lock(mutex_);
    phase_ = phase;
  }
  beat();
}

void StatusBoard::beat() {
  beat("supervisor", patience_);
}

void StatusBoard::beat(const std::string& name, base::Duration patience, bool vital) {
  const std::lock_guard lock(mutex_);
  beats_[name] = {clock_.now(), patience, vital};
}

void StatusBoard::silent(const std::string& name) {
  const std::lock_guard lock(mutex_);
  beats_.erase(name);
}

void StatusBoard::camera(const WatchSettings& watch, CameraState state, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  cameras_[watch.name] = {watch.tenant, state, reason, clock_.now()};
}

void StatusBoard::remark(const std::string& camera, const std::string& remark) {
  const std::lock_guard lock(mutex_);
  if (remark.empty()) {
    remarks_.erase(camera);
  } else {
    remarks_[camera] = remark;
  }
}

void StatusBoard::forget(const std::string& camera) {
  const std::lock_guard lock(mutex_);
  cameras_.erase(camera);
  remarks_.erase(camera);
}

void StatusBoard::device(const std::string& device, DeviceState state, const std::string& reason) {
  const std::lock_guard lock(mutex_);
  devices_[device] = {state, reason, clock_.now()};
}

void StatusBoard::outbox(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  outbox_failure_ = failure;
}

void StatusBoard::gateway(const std::string& why_not) {
  const std::lock_guard lock(mutex_);
  gateway_trouble_ = why_not;
}

std::string StatusBoard::gateway() const {
  const std::lock_guard lock(mutex_);
  return gateway_trouble_;
}

void StatusBoard::events(const std::string& waits) {
  const std::lock_guard lock(mutex_);
  events_wait_ = waits;
}

void StatusBoard::fleet(FleetStanding standing) {
  const std::lock_guard lock(mutex_);
  fleet_ = std::move(standing);
}

bool StatusBoard::live_locked() const {
  return phase_ == RunPhase::starting || late_locked(true).empty();
}

std::vector<std::string> StatusBoard::late_locked(bool vital_only) const {
  std::vector<std::string> late;
  const auto now = clock_.now();
  for (const auto& [name, beat] : beats_)
    if ((beat.vital || !vital_only) && now - beat.last > beat.patience) late.push_back(name);
  return late;
}

std::vector<std::string> StatusBoard::late() const {
  const std::lock_guard lock(mutex_);
  return late_locked(false);
}

bool StatusBoard::computes_locked() const {
  return devices_.empty() || std::any_of(devices_.begin(), devices_.end(), [](const auto& each) {
           return each.second.state == DeviceState::up;
         });
}

bool StatusBoard::computes() const {
  const std::lock_guard lock(mutex_);
  return computes_locked();
}

bool StatusBoard::ready_locked() const {
  return phase_ == RunPhase::running && live_locked() && outbox_failure_.empty() && computes_locked() &&
         (!fleet_ || fleet_->is_ready);
}

std::map<std::string, CameraState> StatusBoard::cameras() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, CameraState> states;
  for (const auto& [name, camera] : cameras_) states.emplace(name, camera.state);
  return states;
}

std::map<std::string, CameraStanding> StatusBoard::cameras(const std::vector<std::string>& names) const {
  const std::lock_guard lock(mutex_);
  const auto now = clock_.now();
  std::map<std::string, CameraStanding> standings;
  for (const std::string& name : names) {
    const auto camera = cameras_.find(name);
    if (camera == cameras_.end()) continue;
    const auto& [tenant, state, reason, since] = camera->second;
    const auto remark = remarks_.find(name);
    standings[name] = {state, remark != remarks_.end() && state == CameraState::up ? remark->second : reason,
                       std::chrono::duration_cast<base::Duration>(now - since)};
  }
  return standings;
}

StatusReport StatusBoard::report() const {
  const std::lock_guard lock(mutex_);
  return {.phase = phase_,
          .live = live_locked(),
          .started = phase_ != RunPhase::starting,
          .ready = ready_locked(),
          .late = late_locked(false)};
}

std::string StatusBoard::json(const Metrics& metrics) const {
  // What takes long is done without the lock: probes and the pipeline must not wait for it.
  const Figures figures(metrics);
  const std::map<std::string, CameraFigures> counted = metrics.cameras();
  const auto now = clock_.now();
  nlohmann::json result;
  std::map<std::string, Camera> cameras;
  std::map<std::string, Device> devices;
  {
    const std::lock_guard lock(mutex_);
    result = {{"phase", name_of(phase_)},
              {"live", live_locked()},
              {"late", late_locked(false)},
              {"ready", ready_locked()},
              {"uptime_seconds", seconds(now - begin_)},
              {"outbox",
               {{"failure", outbox_failure_},
                {"in_memory", figures.sum("vigil_outbox_in_memory") > 0},
                {"pending", figures.sum("vigil_outbox_pending")}}},
              {"configuration", {{"current", figures.sum("vigil_config_last_reload_success") > 0}}}};
    if (fleet_) {
      result["fleet"] = json_of(*fleet_);
      result["fleet"]["gateway"] = gateway_trouble_;
      result["fleet"]["events"] = events_wait_;
    }
    cameras = cameras_;
    devices = devices_;
    for (auto& [name, camera] : cameras)
      if (const auto remark = remarks_.find(name);
          remark != remarks_.end() && camera.state == CameraState::up)
        camera.reason = remark->second;
  }
  result["cameras"] = nlohmann::json::array();
  for (const auto& [name, camera] : cameras) {
    const auto entry = counted.find(name);
    const CameraFigures of_camera = entry == counted.end() ? CameraFigures() : entry->second;
    result["cameras"].push_back({{"camera", name},
                                 {"tenant", camera.tenant},
                                 {"state", std::string(actors::name_of(camera.state))},
                                 {"reason", camera.reason},
                                 {"since_seconds", seconds(now - camera.since)},
                                 {"fps", of_camera.fps},
                                 {"frames", of_camera.frames},
                                 {"dropped", of_camera.dropped},
                                 {"reconnects", of_camera.reconnects}});
  }
  result["devices"] = nlohmann::json::array();
  for (const auto& [name, device] : devices)
    result["devices"].push_back({{"device", name},
                                 {"state", std::string(actors::name_of(device.state))},
                                 {"reason", device.reason},
                                 {"since_seconds", seconds(now - device.since)},
                                 {"failures", figures.sum("vigil_device_failures_total", name, "device")}});
  figures.each("vigil_window_latency_seconds", [&](const auto& metric, double) {
    const auto& histogram = metric.histogram;
    const auto count = static_cast<double>(histogram.sample_count);
    result["window_latency_seconds"] = {
        {"count", histogram.sample_count},
        {"mean", count > 0 ? nlohmann::json(histogram.sample_sum / count) : nlohmann::json()},
        {"p50", quantile(histogram, 0.5)},
        {"p95", quantile(histogram, 0.95)}};
  });
  result["queues"] = figures.by("vigil_mailbox_depth", "actor");
  result["windows"] = figures.by("vigil_windows_total", "outcome");
  result["alerts"] = figures.sum("vigil_alerts_total");
  result["kv_usage"] = figures.mean("vigil_kv_cache_usage_ratio");
  return base::json_line(result);
}

}  // namespace vigil::actors
