// The pipeline of `vigil run` in this process, without sockets, with looped cameras and clocks at every
// stage.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "actors/supervisor/supervisor_actor.h"
#include "bench/pipeline_figures.h"
#include "bench/stage_log.h"
#include "bench/window_log.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "media/media.h"
#include "services/memory_parts.h"

namespace vigil::services {

struct BenchPipelineOptions {
  std::shared_ptr<const model::ModelFolder> folder;
  engine::EngineOptions engine;
  /// Of all frames; the model's own choice if left out.
  std::optional<media::Size> size;
  /// What the cameras are copies of, in turns: files that are looped at their own pace.
  std::vector<config::CameraSettings> cameras;
  /// Their rules tell in every window.
  bool tell_all = false;
  /// What cameras remember; by default nothing.
  config::MemorySettings memory = {};
  /// How long what goes to the disk waits for more at most; the memory's own choice if left out.
  std::optional<base::Duration> part_time = std::nullopt;
};

/// The pipeline ended of itself: its device was lost, or an actor failed. `drain` tells why.
class PipelineEnded : public std::runtime_error {
 public:
  PipelineEnded() : std::runtime_error("the pipeline ended") {}
};

class BenchPipeline {
 public:
  /// Loads the model; throws as `run` would, and UsageError for a size that it cannot look at.
  explicit BenchPipeline(BenchPipelineOptions options);
  /// Drains, and abandons what does not end.
  ~BenchPipeline();
  BenchPipeline(const BenchPipeline&) = delete;
  BenchPipeline& operator=(const BenchPipeline&) = delete;

  /// Starts or ends cameras, new ones within a stride so that windows of all end evenly spread over it, and
  /// waits until all have windows of full length and what was left of the last step is through. Throws
  /// PipelineEnded.
  void set_cameras(int count);

  /// Cameras remember what they see from now on, or do not, and forget it; then so many seconds pass. Throws
  /// PipelineEnded.
  void remember(bool remembers, double settle);

  /// Looks on for so long, or, if `may_stop`, until it is clear that the cameras are too many. Throws
  /// PipelineEnded.
  bench::PipelineFigures measure(double seconds, bool may_stop);

  /// Ends the cameras, and waits for what is under way as long as `run` would. May be called again.
  const actors::DrainReport& drain();

  /// Ends the process. For a drain that is not complete: a computation that does not come to an end would
  /// keep the destructor for ever.
  [[noreturn]] void abandon(int code);

  /// Of the pipeline's metrics, all series of this name together.
  double metric(const std::string& name) const;

  const engine::Engine& engine() const { return *engine_; }
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
  actors::PipelineObserver observer();
  void list(int count);
  std::string page() const { return metrics_.text(); }
  /// Throws PipelineEnded as soon as that is so.
  void wait(double seconds) const;

  BenchPipelineOptions options_;
  cluster::SystemClock clock_;
  std::shared_ptr<engine::Engine> engine_;
  std::map<std::string, bench::StageLog> stages_;
  std::unique_ptr<Folder> folder_;
  config::RetentionClock ages_{clock_};
  std::unique_ptr<actors::Outbox> outbox_;
  std::unique_ptr<TimedPublisher> publisher_;
  /// Of all cameras together: what was lost does not go with a camera that is removed.
  actors::Metrics metrics_{actors::Metrics::Options{.cameras = false}};
  actors::StatusBoard board_;
  bench::WindowLog log_;
  spdlog::logger logger_;
  MemoryParts memory_;
  cluster::SystemConfig system_config_;
  std::unique_ptr<caf::actor_system> system_;
  /// While it lives there is a cache, if there is anything to remember.
  std::optional<MemoryParts::Running> remembering_;
  actors::supervisor_actor supervisor_;
  /// There when the pipeline has ended.
  std::shared_future<actors::DrainReport> ended_;
  base::Clock::TimePoint begin_;
  double product_limit_ = 0;
  std::vector<actors::CameraPtr> cameras_;
};

}  // namespace vigil::services
