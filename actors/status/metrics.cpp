#include "actors/status/metrics.h"

#include <array>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

namespace vigil::actors {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;
using prometheus::Registry;

// The buckets of the time metrics of known inference servers, so that their dashboards fit.
const Histogram::BucketBoundaries kSeconds = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25, 0.5,
                                              0.75,  1.0,   2.5,  5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0};

constexpr std::array kCameraStates = {CameraState::connecting, CameraState::up, CameraState::stalled,
                                      CameraState::down};
constexpr std::array kDeviceStates = {DeviceState::up, DeviceState::restarting, DeviceState::lost};

Family<Counter>& counter(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

Family<Gauge>& gauge(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildGauge().Name(name).Help(help).Register(registry);
}

Histogram& seconds(Registry& registry, const char* name, const char* help) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, kSeconds);
}

}  // namespace

struct Metrics::Families {
  std::shared_ptr<Registry> registry = std::make_shared<Registry>();
  Registry& r = *registry;
  Family<Gauge>& up = gauge(r, "vigil_camera_up", "Whether the camera delivers frames (1) or not (0)");
  Family<Gauge>& state =
      gauge(r, "vigil_camera_state", "The state that the camera is in (1), and the others (0)");
  Family<Gauge>& fps =
      gauge(r, "vigil_camera_fps", "Frames sampled from the camera a second, over the last seconds");
  Family<Gauge>& recording =
      gauge(r, "vigil_camera_recording", "Whether the input that is recorded and not watched delivers");
  Family<Counter>& reconnects =
      counter(r, "vigil_camera_reconnects_total", "Attempts to reach a lost camera again");
  Family<Counter>& damaged =
      counter(r, "vigil_camera_damaged_packets_total", "Packets that could not be decoded");
  Family<Counter>& frames = counter(r, "vigil_frames_total", "Frames sampled from the camera");
  Family<Counter>& dropped =
      counter(r, "vigil_frames_dropped_total", "Sampled frames that no window showed, by reason");
  Family<Gauge>& depth = gauge(r, "vigil_mailbox_depth", "What waits in the actor's bounded queue");
  Family<Counter>& windows = counter(r, "vigil_windows_total", "Windows that became due, by outcome");
  Family<Counter>& alerts = counter(r, "vigil_alerts_total", "Alerts emitted, by topic and severity");
  Family<Counter>& held =
      counter(r, "vigil_alerts_held_total", "Episodes that began without being told, by reason");
  Family<Counter>& reloads =
      counter(r, "vigil_config_reloads_total", "Changes of the configuration while running, by result");
  Gauge& reload_success = gauge(r, "vigil_config_last_reload_success",
                                "Whether the last change of the configuration was applied (1) or not (0)")
                              .Add({});
  Family<Counter>& messages = counter(r, "vigil_messages_dropped_total",
                                      "Events lost, and times that a slow subscriber began to lose events");
  Histogram& encode = seconds(r, "vigil_encode_time_seconds", "One pass of the vision tower");
  Histogram& prefill = seconds(r, "vigil_request_prefill_time_seconds", "Prefill of one batch of windows");
  Histogram& decode = seconds(r, "vigil_request_decode_time_seconds", "Completion of one batch of answers");
  Histogram& latency = seconds(r, "vigil_window_latency_seconds",
                               "From the capture of a window's last frame until its answers");
  Counter& patches =
      counter(r, "vigil_patches_encoded_total", "Temporal patches that the vision tower encoded").Add({});
  Counter& visual_tokens =
      counter(r, "vigil_visual_tokens_total", "Tokens that the vision tower made").Add({});
  Counter& prompt_tokens =
      counter(r, "vigil_prompt_tokens_total", "Tokens of prompts, those of frames included").Add({});
  Counter& generated = counter(r, "vigil_generation_tokens_total", "Tokens generated").Add({});
  Counter& outbox_failures =
      counter(r, "vigil_outbox_failures_total", "Writes to the outbox that failed").Add({});
  Family<Gauge>& kv = gauge(r, "vigil_kv_cache_usage_ratio",
                            "Share of the KV cache that windows hold or have reserved, by tier and device");
  Family<Gauge>& device_up =
      gauge(r, "vigil_device_up", "Whether cameras are watched on the device (1) or not (0)");
  Family<Gauge>& device_state =
      gauge(r, "vigil_device_state", "The state that the device is in (1), and the others (0)");
  Family<Counter>& device_failures =
      counter(r, "vigil_device_failures_total", "Times that what computes on the device failed");
  Gauge& evidence = gauge(r, "vigil_evidence_bytes", "Stills and clips of alerts on the disk").Add({});
  Family<Counter>& clips = counter(r, "vigil_evidence_clips_total",
                                   "Clips that alerts asked for and got or did not get, by state");
  Gauge& pending = gauge(r, "vigil_outbox_pending", "Events that are not published yet").Add({});
};

Metrics::Metrics() : families_(std::make_unique<Families>()) {
  families_->reload_success.Set(1);
}
Metrics::~Metrics() = default;

std::shared_ptr<Registry> Metrics::registry() const {
  return families_->registry;
}

std::string Metrics::text() const {
  return prometheus::TextSerializer().Serialize(families_->registry->Collect());
}

void Metrics::camera_state(const std::string& camera, CameraState state) {
  families_->up.Add({{"camera", camera}}).Set(state == CameraState::up ? 1 : 0);
  for (const CameraState each : kCameraStates) {
    families_->state.Add({{"camera", camera}, {"state", std::string(name_of(each))}})
        .Set(each == state ? 1 : 0);
  }
}

void Metrics::camera_fps(const std::string& camera, double fps) {
  families_->fps.Add({{"camera", camera}}).Set(fps);
}

void Metrics::camera_recording(const std::string& camera, bool recording) {
  families_->recording.Add({{"camera", camera}}).Set(recording ? 1 : 0);
}

void Metrics::camera_removed(const std::string& camera) {
  families_->up.Remove(&families_->up.Add({{"camera", camera}}));
  families_->fps.Remove(&families_->fps.Add({{"camera", camera}}));
  families_->recording.Remove(&families_->recording.Add({{"camera", camera}}));
  for (const CameraState each : kCameraStates) {
    families_->state.Remove(
        &families_->state.Add({{"camera", camera}, {"state", std::string(name_of(each))}}));
  }
}

void Metrics::camera_reconnected(const std::string& camera) {
  families_->reconnects.Add({{"camera", camera}}).Increment();
}

void Metrics::camera_damaged_packets(const std::string& camera, std::uint64_t packets) {
  families_->damaged.Add({{"camera", camera}}).Increment(static_cast<double>(packets));
}

void Metrics::frame_captured(const std::string& camera) {
  families_->frames.Add({{"camera", camera}}).Increment();
}

void Metrics::frames_dropped(const std::string& camera, const std::string& reason, std::uint64_t frames) {
  families_->dropped.Add({{"camera", camera}, {"reason", reason}}).Increment(static_cast<double>(frames));
}

void Metrics::queue_depth(const std::string& actor, std::size_t waiting, const std::string& device) {
  prometheus::Labels labels{{"actor", actor}};
  if (!device.empty()) labels.emplace("device", device);
  families_->depth.Add(labels).Set(static_cast<double>(waiting));
}

void Metrics::encoded(double pass_seconds, std::size_t patches, std::int64_t visual_tokens) {
  families_->encode.Observe(pass_seconds);
  families_->patches.Increment(static_cast<double>(patches));
  families_->visual_tokens.Increment(static_cast<double>(visual_tokens));
}

void Metrics::prefilled(double seconds, std::int64_t prompt_tokens) {
  families_->prefill.Observe(seconds);
  families_->prompt_tokens.Increment(static_cast<double>(prompt_tokens));
}

void Metrics::generated(double seconds, std::int64_t tokens) {
  families_->decode.Observe(seconds);
  families_->generated.Increment(static_cast<double>(tokens));
}

void Metrics::kv_usage(const std::string& tier, const std::string& device, double ratio) {
  families_->kv.Add({{"tier", tier}, {"device", device}}).Set(ratio);
}

void Metrics::device_state(const std::string& device, DeviceState state) {
  families_->device_up.Add({{"device", device}}).Set(state == DeviceState::up ? 1 : 0);
  for (const DeviceState each : kDeviceStates)
    families_->device_state.Add({{"device", device}, {"state", std::string(name_of(each))}})
        .Set(each == state ? 1 : 0);
}

void Metrics::device_failed(const std::string& device) {
  families_->device_failures.Add({{"device", device}}).Increment();
}

void Metrics::windows(const std::string& outcome, std::uint64_t count) {
  families_->windows.Add({{"outcome", outcome}}).Increment(static_cast<double>(count));
}

void Metrics::window_latency(double latency_seconds) {
  families_->latency.Observe(latency_seconds);
}

void Metrics::alert(const std::string& topic, const std::string& severity) {
  families_->alerts.Add({{"topic", topic}, {"severity", severity}}).Increment();
}

void Metrics::alert_held(const std::string& reason) {
  families_->held.Add({{"reason", reason}}).Increment();
}

void Metrics::config_reloaded(bool applied) {
  families_->reloads.Add({{"result", applied ? "applied" : "refused"}}).Increment();
  families_->reload_success.Set(applied ? 1 : 0);
}

void Metrics::messages_dropped(const std::string& socket, const std::string& reason, std::uint64_t count) {
  families_->messages.Add({{"socket", socket}, {"reason", reason}}).Increment(static_cast<double>(count));
}

void Metrics::evidence_bytes(std::uintmax_t bytes) {
  families_->evidence.Set(static_cast<double>(bytes));
}

void Metrics::evidence_clip(const std::string& state) {
  families_->clips.Add({{"state", state}}).Increment();
}

void Metrics::outbox_failed() {
  families_->outbox_failures.Increment();
}

void Metrics::outbox_pending(std::size_t events) {
  families_->pending.Set(static_cast<double>(events));
}

}  // namespace vigil::actors
