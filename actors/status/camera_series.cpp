#include "actors/status/camera_series.h"

#include <array>
#include <chrono>
#include <memory>
#include <set>

#include "actors/status/families.h"
#include "config/schema/fields.h"

namespace vigil::actors {
namespace {

using prometheus::Family;
using prometheus::Labels;
using prometheus::Registry;

constexpr std::array kStates = {CameraState::connecting, CameraState::up, CameraState::stalled,
                                CameraState::down};
/// Those of Metrics::frames_dropped.
constexpr std::array kDropReasons = {"no_credit",     "queue_full",    "late",        "ahead",
                                     "encode_failed", "out_of_memory", "device_down", "device_lost"};

Labels with(Labels labels, const std::string& name, const std::string& value) {
  labels[name] = value;
  return labels;
}

}  // namespace

struct CameraSeries::Families {
  Registry& r;
  Family<Gauge>& cameras = actors::gauge(r, "vigil_cameras", "Cameras in a state");
  Family<Gauge>& up =
      actors::gauge(r, "vigil_camera_up", "Whether the camera delivers frames (1) or not (0)");
  Family<Gauge>& state =
      actors::gauge(r, "vigil_camera_state", "The state that the camera is in (1), and the others (0)");
  Family<Gauge>& fps =
      actors::gauge(r, "vigil_camera_fps", "Frames sampled from the camera a second, over the last seconds");
  Family<Gauge>& recording = actors::gauge(r, "vigil_camera_recording",
                                           "Whether the input that is recorded and not watched delivers");
  Family<Gauge>& last_frame = actors::gauge(r, "vigil_camera_last_frame_timestamp_seconds",
                                            "When the last frame was sampled, since 1970");
  Family<Gauge>& budget = actors::gauge(r, "vigil_camera_kv_budget_usage_ratio",
                                        "Visual tokens of the camera's window, of those that its budget of "
                                        "keys and values has room for");
  Family<Counter>& forgotten =
      counter(r, "vigil_camera_forgotten_tokens_total",
              "Visual tokens that left the camera's window early, since its budget had no room for them");
  Family<Gauge>& pruned_less =
      actors::gauge(r, "vigil_camera_pruned_less_steps",
                    "Steps by which the camera prunes less than it is told, since audits call for it");
  Family<Counter>& audited =
      counter(r, "vigil_audited_answers_total",
              "Answers of windows that were computed whole, too, by whether both count or neither");
  Family<Counter>& difference = counter(r, "vigil_audited_difference_total",
                                        "How far the probabilities of those answers are apart, all added up");
  Family<Counter>& reconnects =
      counter(r, "vigil_camera_reconnects_total", "Attempts to reach a lost camera again");
  Family<Counter>& damaged =
      counter(r, "vigil_camera_damaged_packets_total", "Packets that could not be decoded");
  Family<Counter>& frames = counter(r, "vigil_frames_total", "Frames sampled from the camera");
  Family<Counter>& dropped =
      counter(r, "vigil_frames_dropped_total", "Sampled frames that no window showed, by reason");
  Family<Counter>& alerts = counter(r, "vigil_alerts_total", "Alerts emitted, by topic and severity");
};

CameraSeries::CameraSeries(Registry& registry, bool each) : each_(each), families_(new Families{registry}) {
  for (const CameraState state : kStates) families_->cameras.Add({{"state", std::string(name_of(state))}});
  if (each_) return;
  families_->reconnects.Add({});
  families_->damaged.Add({});
  families_->forgotten.Add({});
  for (const char* agrees : {"true", "false"}) families_->audited.Add({{"agrees", agrees}});
  families_->difference.Add({});
  families_->frames.Add({});
  for (const char* reason : kDropReasons) families_->dropped.Add({{"reason", reason}});
  for (const auto& [severity, value] : config::kSeverityNames)
    families_->alerts.Add({{"severity", std::string(severity)}});
}

Labels CameraSeries::labels(const std::string& name, const Camera& camera) const {
  return each_ ? Labels{{"camera", name}, {"tenant", camera.tenant}} : Labels{};
}

template <class Family>
auto& CameraSeries::series(Family& family, Camera& camera, const Labels& labels) {
  auto& metric = family.Add(labels);
  if (each_) camera.removals.push_back([&family, &metric] { family.Remove(&metric); });
  return metric;
}

void CameraSeries::declare(const std::string& name, Camera& camera) {
  camera.frames = &series(families_->frames, camera, labels(name, camera));
  camera.reconnects = &series(families_->reconnects, camera, labels(name, camera));
  camera.damaged = &series(families_->damaged, camera, labels(name, camera));
  camera.forgotten = &series(families_->forgotten, camera, labels(name, camera));
  for (const char* reason : kDropReasons) dropped_counter(name, camera, reason);
}

prometheus::Counter& CameraSeries::dropped_counter(const std::string& name, Camera& camera,
                                                   const std::string& reason) {
  Counter*& place = camera.dropped[reason];
  if (place == nullptr)
    place = &series(families_->dropped, camera, with(labels(name, camera), "reason", reason));
  return *place;
}

void CameraSeries::declare_alerts(const WatchSettings& watch, Camera& camera) {
  if (!each_) return;
  std::set<std::pair<std::string, std::string>> wanted;
  for (const config::RuleSettings& rule : watch.rules)
    wanted.emplace(alert_topic(watch, rule), config::name_of(rule.severity));
  for (const auto& key : wanted)
    if (!camera.alerts.contains(key))
      camera.alerts[key] = &families_->alerts.Add({{"topic", key.first}, {"severity", key.second}});
  std::erase_if(camera.alerts, [&](const auto& entry) {
    if (wanted.contains(entry.first)) return false;
    families_->alerts.Remove(entry.second);
    return true;
  });
}

void CameraSeries::declare_audits(const WatchSettings& watch, Camera& camera) {
  if (!each_) return;
  std::set<std::string> wanted;
  for (const config::RuleSettings& rule : watch.rules) wanted.insert(rule.name);
  for (const std::string& rule : wanted) {
    if (camera.audits.contains(rule)) continue;
    const Labels of = with(labels(watch.name, camera), "rule", rule);
    camera.audits[rule] = {&families_->audited.Add(with(of, "agrees", "true")),
                           &families_->audited.Add(with(of, "agrees", "false")),
                           &families_->difference.Add(of)};
  }
  std::erase_if(camera.audits, [&](const auto& entry) {
    if (wanted.contains(entry.first)) return false;
    take_away(entry.second);
    return true;
  });
}

void CameraSeries::take_away(const Audits& audits) {
  families_->audited.Remove(audits.agree);
  families_->audited.Remove(audits.differ);
  families_->difference.Remove(audits.difference);
}

void CameraSeries::take_away(Camera& camera) {
  for (const auto& removal : camera.removals) removal();
  for (const auto& [key, alerts] : camera.alerts) families_->alerts.Remove(alerts);
  for (const auto& [rule, audits] : camera.audits) take_away(audits);
  camera.audits.clear();
  camera.removals.clear();
  camera.dropped.clear();
  camera.alerts.clear();
  camera.gauges = {};
}

void CameraSeries::add(const WatchSettings& watch) {
  const std::lock_guard lock(mutex_);
  const auto [entry, is_new] = cameras_.try_emplace(watch.name);
  Camera& camera = entry->second;
  if (is_new || camera.tenant != watch.tenant) {
    take_away(camera);
    camera.tenant = watch.tenant;
    declare(watch.name, camera);
    // What is known of it as it is now holds under the other name, too; counters begin anew.
    show(watch.name, camera);
  }
  declare_alerts(watch, camera);
  declare_audits(watch, camera);
  if (watch.pruning.audit == 0 || camera.pruned_less) return;
  camera.pruned_less = 0;
  show(watch.name, camera);
}

void CameraSeries::remove(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const auto entry = cameras_.find(name);
  if (entry == cameras_.end()) return;
  count_state(entry->second.state, std::nullopt);
  take_away(entry->second);
  cameras_.erase(entry);
}

CameraSeries::Camera* CameraSeries::find(const std::string& name) {
  const auto entry = cameras_.find(name);
  return entry == cameras_.end() ? nullptr : &entry->second;
}

void CameraSeries::show(const std::string& name, Camera& camera) {
  if (!each_) return;
  const auto set = [&](Family<Gauge>& family, Gauge*& place, const std::optional<double>& value) {
    if (!value) return;
    if (place == nullptr) place = &series(family, camera, labels(name, camera));
    place->Set(*value);
  };
  set(families_->fps, camera.gauges.fps, camera.fps);
  set(families_->recording, camera.gauges.recording, camera.recording);
  set(families_->last_frame, camera.gauges.last_frame, camera.last_frame);
  set(families_->budget, camera.gauges.budget, camera.budget);
  set(families_->pruned_less, camera.gauges.pruned_less, camera.pruned_less);
  if (!camera.state) return;
  set(families_->up, camera.gauges.up, *camera.state == CameraState::up ? 1 : 0);
  for (const CameraState each : kStates) {
    Gauge*& place = camera.gauges.states[each];
    if (place == nullptr)
      place =
          &series(families_->state, camera, with(labels(name, camera), "state", std::string(name_of(each))));
    place->Set(each == *camera.state ? 1 : 0);
  }
}

void CameraSeries::count_state(std::optional<CameraState> left, std::optional<CameraState> entered) {
  const auto cameras = [this](CameraState state) -> Gauge& {
    return families_->cameras.Add({{"state", std::string(name_of(state))}});
  };
  if (left) cameras(*left).Decrement();
  if (entered) cameras(*entered).Increment();
}

void CameraSeries::state(const std::string& name, CameraState state) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  count_state(camera->state, state);
  camera->state = state;
  show(name, *camera);
}

void CameraSeries::fps(const std::string& name, double fps) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  camera->figures.fps = fps;
  camera->fps = fps;
  show(name, *camera);
}

void CameraSeries::recording(const std::string& name, bool recording) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  camera->recording = recording ? 1 : 0;
  show(name, *camera);
}

void CameraSeries::reconnected(const std::string& name) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  ++camera->figures.reconnects;
  camera->reconnects->Increment();
}

void CameraSeries::damaged(const std::string& name, std::uint64_t packets) {
  const std::lock_guard lock(mutex_);
  if (Camera* camera = find(name)) camera->damaged->Increment(static_cast<double>(packets));
}

void CameraSeries::frame(const std::string& name, std::optional<base::Clock::WallTime> at) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  ++camera->figures.frames;
  camera->frames->Increment();
  if (!at) return;
  camera->last_frame = std::chrono::duration<double>(at->time_since_epoch()).count();
  show(name, *camera);
}

void CameraSeries::dropped(const std::string& name, const std::string& reason, std::uint64_t frames) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  camera->figures.dropped += frames;
  dropped_counter(name, *camera, reason).Increment(static_cast<double>(frames));
}

void CameraSeries::budget(const std::string& name, std::optional<double> usage, std::uint64_t forgotten) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  camera->forgotten->Increment(static_cast<double>(forgotten));
  // Of one that has no budget any more, what is there says that nothing of one is used.
  if (usage || camera->budget) camera->budget = usage.value_or(0);
  show(name, *camera);
}

void CameraSeries::audited(const std::string& name, const std::string& rule, bool agrees, double difference) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  if (!each_) {
    families_->audited.Add({{"agrees", agrees ? "true" : "false"}}).Increment();
    families_->difference.Add({}).Increment(difference);
    return;
  }
  // A rule that was taken away meanwhile has none any more.
  const auto audits = camera->audits.find(rule);
  if (audits == camera->audits.end()) return;
  (agrees ? audits->second.agree : audits->second.differ)->Increment();
  audits->second.difference->Increment(difference);
}

void CameraSeries::pruned_less(const std::string& name, int steps) {
  const std::lock_guard lock(mutex_);
  Camera* camera = find(name);
  if (camera == nullptr) return;
  camera->pruned_less = steps;
  show(name, *camera);
}

void CameraSeries::alert(const std::string& topic, const std::string& severity) {
  const std::lock_guard lock(mutex_);
  families_->alerts
      .Add(each_ ? Labels{{"topic", topic}, {"severity", severity}} : Labels{{"severity", severity}})
      .Increment();
}

std::map<std::string, CameraFigures> CameraSeries::figures() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, CameraFigures> result;
  for (const auto& [name, camera] : cameras_) result[name] = camera.figures;
  return result;
}

}  // namespace vigil::actors
