// The pipeline of `vigil run` in this process, without sockets, with looped cameras and clocks at every
// stage.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/bench/stage_log.h"
#include "actors/bench/window_log.h"
#include "actors/supervisor/supervisor_actor.h"
#include "cluster/clock.h"
#include "cluster/system.h"
#include "config/settings.h"
#include "engine/window/engine.h"
#include "media/media.h"

namespace vigil::services {

struct BenchPipelineOptions {
  std::shared_ptr<const model::ModelFolder> folder;
  window::EngineOptions engine;
  /// Of all frames; the model's own choice if left out.
  std::optional<media::Size> size;
  /// What the cameras are copies of, in turns: files that are looped at their own pace.
  std::vector<config::CameraSettings> cameras;
  /// Their rules tell in every window.
  bool tell_all = false;
};

/// Tokens of a KV cache for so many of the longest windows, with full answers to all their rules. Opens the
/// cameras' files where the frames' size is the model's choice; throws as that does.
std::int64_t cache_for(const BenchPipelineOptions& options, int windows);

/// What was seen while so many cameras ran for some time.
struct PipelineFigures {
  int cameras = 0;
  double seconds = 0;
  std::vector<actors::AnsweredWindow> windows;
  /// Windows that became due, by the cameras' strides.
  double due = 0;
  double overtaken = 0;
  double failed = 0;
  std::map<std::string, double> dropped_frames;
  std::optional<double> least_share;
  /// Seconds of each piece of work, by stage: "decode" up to a sampled frame, "vision" a pass, "prefill" a
  /// batch of windows, "tokens" a batch of explanations, "alerts" from a window's last frame until its alert
  /// is out.
  std::map<std::string, std::vector<double>> stages;
  /// Processor time by stage, and "other".
  std::map<std::string, double> cpu;
  double cpu_total = 0;
  double cpu_products = 0;
  double flops = 0;
  double tokens = 0;
  double alerts = 0;
  std::uint64_t resident_bytes = 0;
  std::uint64_t most_resident_bytes = 0;
  double load = 0;
  /// Alerts that became due, if every window tells all its rules.
  std::optional<double> alerts_due;

  /// Whether every window was answered, 95 of 100 within their stride; and told, if all are.
  bool held(double stride) const;
};

class BenchPipeline {
 public:
  /// Loads the model; throws as `run` would, and UsageError for a size that it cannot look at.
  explicit BenchPipeline(BenchPipelineOptions options);
  /// Drains.
  ~BenchPipeline();
  BenchPipeline(const BenchPipeline&) = delete;
  BenchPipeline& operator=(const BenchPipeline&) = delete;

  /// Starts or ends cameras, new ones within a stride so that windows of all end evenly spread over it, and
  /// waits until all have windows of full length and what was left of the last step is through.
  void set_cameras(int count);

  /// Looks on for so long, or, if `may_stop`, until it is clear that the cameras are too many.
  PipelineFigures measure(double seconds, bool may_stop);

  const window::Engine& engine() const { return engine_; }
  /// FLOP/s that the processors do in large products, were nothing else to do.
  double product_limit() const { return product_limit_; }
  /// Of the first camera, in seconds.
  double stride() const;
  double length() const;

 private:
  class TimedPublisher;
  class Folder;

  void try_size(media::Size size);
  actors::FrameShape shape() const;
  /// The engine's parts, whose times are taken.
  actors::EngineParts timed_parts();
  void list(int count);
  std::string page() const { return metrics_.text(); }

  BenchPipelineOptions options_;
  cluster::SystemClock clock_;
  window::Engine engine_;
  std::map<std::string, actors::StageLog> stages_;
  std::unique_ptr<Folder> folder_;
  std::unique_ptr<actors::Outbox> outbox_;
  std::unique_ptr<TimedPublisher> publisher_;
  actors::Metrics metrics_;
  actors::StatusBoard board_;
  actors::WindowLog log_;
  spdlog::logger logger_;
  cluster::SystemConfig system_config_;
  std::unique_ptr<caf::actor_system> system_;
  actors::supervisor_actor supervisor_;
  config::Clock::TimePoint begin_;
  double product_limit_ = 0;
  std::vector<actors::CameraPtr> cameras_;
};

}  // namespace vigil::services
