#include "services/bench_demotion.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <iostream>
#include <stdexcept>
#include <utility>

#include "base/duration.h"
#include "bench/cache_size.h"
#include "bench/questions.h"
#include "engine/kv/history/history_store.h"
#include "services/bench_pipeline.h"
#include "services/frame_shape.h"
#include "services/video_option.h"

namespace vigil::services {
namespace {

/// Beside those of the cameras, in the cache: batches that are computed and told.
constexpr int kMoreWindows = 24;
/// From which on a side's 95th of a hundred is a figure.
constexpr std::size_t kWindowsEnough = 100;
/// So that a turn that remembers writes what it remembers, and no other one does.
constexpr base::Duration kPartTime = std::chrono::seconds(1);

BenchPipelineOptions pipeline_of(const DemotionOptions& options) {
  BenchPipelineOptions pipeline;
  pipeline.folder = options.folder;
  pipeline.engine = options.engine;
  pipeline.size = options.size;
  for (const std::string& video : options.videos) {
    config::CameraSettings camera;
    camera.inputs = {{{video, shown_video(video)}, {config::Role::detect}}};
    camera.stream.window = options.window;
    camera.stream.fps = options.fps;
    camera.stream.pruning = options.pruning;
    camera.rules = bench::questions(options.rules, /*tokens=*/1);
    pipeline.cameras.push_back(std::move(camera));
  }
  pipeline.memory.enabled = true;
  pipeline.memory.dir = options.dir;
  pipeline.part_time = kPartTime;
  if (options.has_kv_tokens) return pipeline;
  const auto preprocessor = preprocessor_of(*options.folder);
  pipeline.engine.kv_tokens = bench::cache_for(
      pipeline.cameras, *preprocessor,
      [&](const config::CameraSettings&) {
        return model::PictureSize{options.size.width, options.size.height};
      },
      kMoreWindows + options.cameras);
  return pipeline;
}

bench::DemotionFigures measure(const DemotionOptions& options, BenchPipeline& pipeline) {
  std::cerr << "vigil: " << options.cameras << " cameras ..." << std::flush;
  pipeline.set_cameras(options.cameras);
  bench::DemotionFigures figures =
      bench::measure_demotion(options.plan, [&](bool remembers, double settle, double seconds) {
        pipeline.remember(remembers, settle);
        return pipeline.measure(seconds, /*may_stop=*/false);
      });
  std::cerr << " measured\n";
  return figures;
}

void tell(const DemotionOptions& options, const bench::DemotionFigures& figures, double written,
          bench::MemoryReport& report) {
  bench::MemoryFigure late{.part = "demotion",
                           .work = "windows' 95th of a hundred, remembering",
                           .value = figures.p95_with(),
                           .unit = "s"};
  late.beside = {{"without", figures.p95_without()}};
  late.floor = "without";
  // Of fewer windows a 95th of a hundred is the machine's noise.
  if (std::min(figures.with.size(), figures.without.size()) >= kWindowsEnough) late.most = 1.02;
  late.about = {{"cameras", options.cameras},
                {"windows_with", figures.with.size()},
                {"windows_without", figures.without.size()},
                {"windows_lost", figures.windows_lost},
                {"p95_with", figures.with_p95},
                {"p95_without", figures.without_p95},
                {"written_bytes", written}};
  late.remark = std::to_string(options.cameras) + " cameras, " + std::to_string(figures.with.size()) +
                " and " + std::to_string(figures.without.size()) + " windows";
  report.add(late);
}

void tell(const bench::Remembered& there, bench::MemoryReport& report) {
  if (there.pages == 0) {
    report.missing("demotion", "no page with a sketch came to the disk: how large one is was not measured");
    return;
  }
  const auto pages = static_cast<double>(there.pages);
  bench::MemoryFigure sketch{.part = "demotion",
                             .work = "a page's sketch, of these videos",
                             .value = static_cast<double>(there.sketch_bytes) / pages,
                             .unit = "B"};
  sketch.beside = {{"int4", static_cast<double>(there.int4_bytes) / pages}};
  sketch.floor = "int4";
  const double kept = static_cast<double>(there.tokens) / static_cast<double>(there.cells);
  const double standing_out = static_cast<double>(there.standing_out) / static_cast<double>(there.tokens);
  sketch.about = {{"pages", there.pages}, {"kept_share", kept}, {"standing_out_share", standing_out}};
  sketch.remark = std::to_string(there.pages) + " pages, of which " + std::to_string(kept) +
                  " of the tokens were kept and " + std::to_string(standing_out) + " of these stand out";
  report.add(sketch);
}

}  // namespace

void bench_demotion(const DemotionOptions& options, bench::MemoryReport& report) {
  {
    BenchPipeline pipeline(pipeline_of(options));
    try {
      const bench::DemotionFigures figures = measure(options, pipeline);
      tell(options, figures, pipeline.metric("vigil_memory_written_bytes_total"), report);
    } catch (const PipelineEnded&) {
      std::cerr << " not measured\n";
    }
    const actors::DrainReport& drained = pipeline.drain();
    if (!drained.failures.empty()) throw std::runtime_error(drained.failures.front());
    if (!drained.complete) {
      std::cerr << "vigil: what was still under way did not end in time and was left\n";
      pipeline.abandon(1);
    }
  }
  // The cache has written all that it had taken.
  tell(bench::remembered_in(*history::open_history_store(options.dir)), report);
}

}  // namespace vigil::services
