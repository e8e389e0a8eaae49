// What the running process tells about itself, in the terms of Prometheus.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <prometheus/registry.h>

#include "actors/messages/data.h"

namespace vigil::actors {

/// All metrics of `vigil run`, prefix `vigil_`. Thread-safe.
class Metrics {
 public:
  Metrics();
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// To be exposed; `text` is the same in the exposition format.
  std::shared_ptr<prometheus::Registry> registry() const;
  std::string text() const;

  void camera_state(const std::string& camera, CameraState state);
  void camera_fps(const std::string& camera, double fps);
  /// Of an input that is recorded and not watched: whether it delivers.
  void camera_recording(const std::string& camera, bool recording);
  /// Its state is not shown any more. To be called when nothing of it is under way.
  void camera_removed(const std::string& camera);
  void camera_reconnected(const std::string& camera);
  void camera_damaged_packets(const std::string& camera, std::uint64_t packets);
  void frame_captured(const std::string& camera);
  /// `reason`: no_credit, queue_full, late, encode_failed, out_of_memory, device_down (its device is not up),
  /// device_lost (they were on a device when it failed).
  void frames_dropped(const std::string& camera, const std::string& reason, std::uint64_t frames);

  /// `actor`: vision, prefill, target, evidence; `waiting`: what its bounded queue holds. `device`: of an
  /// actor that each device has.
  void queue_depth(const std::string& actor, std::size_t waiting, const std::string& device = {});
  /// One pass of the vision tower.
  void encoded(double seconds, std::size_t patches, std::int64_t visual_tokens);
  /// One batch of windows that were prefilled and asked.
  void prefilled(double seconds, std::int64_t prompt_tokens);
  /// One batch of answers that were completed.
  void generated(double seconds, std::int64_t tokens);
  /// The share of a device's KV cache that windows hold or have reserved. `tier`: host, gpu.
  void kv_usage(const std::string& tier, const std::string& device, double ratio);
  void device_state(const std::string& device, DeviceState state);
  /// One of the actors that compute on it failed.
  void device_failed(const std::string& device);
  /// `outcome`: answered, overtaken, failed, out_of_memory, device_lost.
  void windows(const std::string& outcome, std::uint64_t count);
  /// From the capture of a window's last frame until its answers.
  void window_latency(double seconds);

  void alert(const std::string& topic, const std::string& severity);
  /// An episode began that is not told. `reason`: cooldown, rate_cap, snoozed.
  void alert_held(const std::string& reason);
  /// A change of the configuration was applied, or was not.
  void config_reloaded(bool applied);
  void messages_dropped(const std::string& socket, const std::string& reason, std::uint64_t count);
  /// Of all stills and clips.
  void evidence_bytes(std::uintmax_t bytes);
  /// A clip that was asked for is there or will not be. `state`: ready, failed.
  void evidence_clip(const std::string& state);
  void outbox_failed();
  void outbox_pending(std::size_t events);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace vigil::actors
