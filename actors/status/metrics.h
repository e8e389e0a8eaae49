// What the running process tells about itself, in the terms of Prometheus.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <prometheus/registry.h>

#include "actors/messages/data.h"
#include "actors/status/camera_series.h"
#include "base/clock.h"
#include "engine/stream/page_sink.h"

namespace vigil::actors {

/// What the kernel tells of the process, for the metrics `process_`.
struct ProcessFigures {
  double cpu_seconds = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t virtual_bytes = 0;
  std::uint64_t open_fds = 0;
  std::uint64_t max_fds = 0;
  /// Since 1970.
  double start_seconds = 0;
};

/// What a stage is asked for. Of each window, all rules at once; of an alert, its text.
enum class RequestKind : std::uint8_t { window, explanation };

/// Of patches of a pass of the vision tower, the groups of which there are tokens, of which there are none,
/// and which the tower did not compute.
struct EncodedTokens {
  std::int64_t kept = 0;
  std::int64_t pruned = 0;
  std::int64_t not_computed = 0;
};

/// What the memories of a device's windows hold.
struct HeldMemory {
  std::int64_t tokens = 0;
  std::int64_t host_bytes = 0;
  std::int64_t device_bytes = 0;
  /// Of the host's memory, what they may take.
  std::int64_t room = 0;
};

/// All metrics of `vigil run`, prefix `vigil_`. Counters are there at 0 before anything is counted, with
/// every value of their labels that is known in advance. Thread-safe.
class Metrics {
 public:
  struct Options {
    /// Whether there are series of each camera, or of all together.
    bool cameras = true;
  };

  Metrics() : Metrics(Options{true}) {}
  explicit Metrics(const Options& options);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// To be exposed; `text` is the same in the exposition format.
  std::shared_ptr<prometheus::Registry> registry() const;
  std::string text() const;

  void build(const std::string& version, const std::string& commit);
  void process(const ProcessFigures& figures);

  /// From now on it is counted; to be called again when its labels or rules are others. What comes of a
  /// camera that was not added counts for none.
  void camera_added(const WatchSettings& watch);
  void camera_state(const std::string& camera, CameraState state);
  void camera_fps(const std::string& camera, double fps);
  /// Of an input that is recorded and not watched: whether it delivers.
  void camera_recording(const std::string& camera, bool recording);
  /// Nothing is shown of it any more. To be called when nothing of it is under way.
  void camera_removed(const std::string& camera);
  /// Of each camera that was added and not removed, whether or not there are series of each.
  std::map<std::string, CameraFigures> cameras() const;
  void camera_reconnected(const std::string& camera);
  void camera_damaged_packets(const std::string& camera, std::uint64_t packets);
  void frame_captured(const std::string& camera, std::optional<base::Clock::WallTime> at = {});
  /// `reason`: no_credit, queue_full, late, ahead (of the clock), encode_failed, out_of_memory, device_down
  /// (its device is not up), device_lost (they were on a device when it failed).
  void frames_dropped(const std::string& camera, const std::string& reason, std::uint64_t frames);
  /// `usage`: of the camera's budget of keys and values, what its window takes; nothing: it has none.
  /// `forgotten`: visual tokens that left it early for want of room.
  void camera_budget(const std::string& camera, std::optional<double> usage, std::uint64_t forgotten);
  /// Windows that were computed whole beside what their cameras prune and reuse, and those of which that came
  /// to nothing.
  void audits(std::size_t answered, std::size_t given_up);
  /// An answer of such a window: whether it counts as the other one does, and how far apart both are.
  void audited(const std::string& camera, const std::string& rule, bool agrees, double difference);
  /// The camera prunes by so many steps less than its settings say.
  void camera_pruned_less(const std::string& camera, int steps);

  /// `actor`: vision, stream, evidence; `waiting`: what its bounded queue holds. `device`: of an
  /// actor that each device has.
  void queue_depth(const std::string& actor, std::size_t waiting, const std::string& device = {});
  /// One pass of the vision tower.
  void encoded(double seconds, std::size_t patches, const EncodedTokens& tokens);
  /// A window got its answers, so many seconds after its first pass since it was asked had begun. Of the
  /// tokens of all prompts, `reused` had their keys and values computed already, for another rule of the same
  /// window or for an earlier window.
  void prefilled(double seconds, std::int64_t prompt_tokens, std::int64_t reused = 0);
  /// What became of the visual tokens of a window that got its answers.
  void window_tokens(const stream::WindowTokens& tokens);
  /// Visual tokens whose keys and values a stream keeps no longer.
  void left_stream(stream::Leaving why, std::uint64_t tokens);
  /// From when a window's last patch was encoded until the first tokens of its answers.
  void first_token(double seconds);
  /// An answer was completed, with so many tokens, of which those behind the first one, `later`, took so
  /// long.
  void generated(double seconds, std::int64_t tokens, std::int64_t later);
  /// Those that are computed and those that wait for it, as the one who computes knows.
  void requests(RequestKind kind, const std::string& device, std::size_t running, std::size_t waiting);
  /// The share of a device's KV cache that streams, windows and texts hold. `tier`: host, gpu.
  void kv_usage(const std::string& tier, const std::string& device, double ratio);
  /// What windows remember of what lies before them (`window: {memory: …}`).
  void window_memory(const std::string& device, const HeldMemory& held);
  void device_state(const std::string& device, DeviceState state);
  /// Whether it is behind with its work (device/backlog.h).
  void device_behind(const std::string& device, bool is_behind);
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
  /// Connections that are open on a socket for strangers. `listener`: events, replay.
  void topic_connections(const std::string& listener, int open);
  /// `reason`: connections, address, handshake, protocol, frame_size, message_parts, allowance, silence,
  /// descriptors.
  void connections_refused(const std::string& listener, const std::string& reason, std::uint64_t count);
  /// Of all stills and clips.
  void evidence_bytes(std::uintmax_t bytes);
  /// A clip that was asked for is there or will not be. `state`: ready, failed.
  void evidence_clip(const std::string& state);
  void outbox_failed();
  void outbox_pending(std::size_t events);
  /// Events are kept in memory, since the disk cannot be used.
  void outbox_in_memory(bool in_memory);
  /// `reason`: of an `OutboxNotice`. Those that mean that the outbox was replaced are counted, and so are
  /// those of the clock.
  void outbox_noticed(const std::string& reason);

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace vigil::actors
