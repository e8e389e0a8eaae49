// The part of `vigil bench memory` that has a pipeline: what remembering costs the windows of the present.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/demotion.h"
#include "bench/memory_report.h"
#include "config/settings.h"
#include "engine/engine.h"
#include "engine/model/model_folder.h"
#include "media/media.h"

namespace vigil::services {

struct DemotionOptions {
  /// That the cameras play in turns.
  std::vector<std::string> videos;
  int cameras = 2;
  int rules = 1;
  config::WindowSettings window;
  double fps = 2;
  config::PruningSettings pruning;
  media::Size size;
  bench::DemotionPlan plan;
  std::shared_ptr<const model::ModelFolder> folder;
  /// Without a number of tokens the cache has room for the cameras' windows.
  engine::EngineOptions engine;
  bool has_kv_tokens = false;
  /// Of what is remembered; is made.
  std::filesystem::path dir;
};

/// Throws as `BenchPipeline` does, and std::runtime_error where the pipeline ended.
void bench_demotion(const DemotionOptions& options, bench::MemoryReport& report);

}  // namespace vigil::services
