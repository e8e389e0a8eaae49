// The parts of `vigil bench memory` that need a disk and an engine, but no pipeline.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"
#include "bench/made_pages.h"
#include "bench/memory_day.h"
#include "bench/memory_report.h"
#include "bench/past_asker.h"
#include "bench/store_rates.h"
#include "engine/engine.h"
#include "engine/model/model_folder.h"

namespace vigil::bench {

struct MemoryBenchOptions {
  /// On the disk that is meant; has to be there. What is written there stays until whoever made it removes
  /// it.
  std::filesystem::path folder;
  /// Share of a day.
  double scale = 0.125;
  int rounds = 3;
  /// Of 64 MiB, for the rates.
  std::size_t files = 8;
  bool has_fio = false;
  std::shared_ptr<const model::ModelFolder> model;
  engine::EngineOptions engine;
  /// Of pictures, in pixels.
  int width = 224, height = 224;
  std::string question = "Is there a car?";
  /// What the question after a restart is about, and the one that is measured; where the day is shorter, all
  /// of it.
  base::Duration restart_span = std::chrono::minutes(10), ask_span = std::chrono::hours(2);
  std::uint64_t seed = 1;
};

/// Not thread-safe. Each part throws what its stores, files and engine throw.
class MemoryBench {
 public:
  /// They have to outlive it.
  MemoryBench(const MemoryBenchOptions& options, const base::Clock& clock, MemoryReport& report);

  /// Pages of 1, 2 and 4 MiB through the history store.
  void store();
  /// A share of a day of 16 cameras, and what is written of it.
  void day();
  /// That day's folder is opened anew, and asked. Makes the day where `day` was not measured.
  void restart();
  /// A question about two hours that lie on the disk.
  void ask();

 private:
  struct Opened;

  void report_rates(const Figures& rates, std::size_t value_bytes);
  /// As the day left it.
  const MemoryDayFigures& the_day();
  MemoryDayOptions day_options() const;
  engine::Engine& the_engine();
  std::unique_ptr<Opened> open();
  double page_rate() const;
  /// About the last stretch of the day of a camera.
  memory::PastAsking asking(const std::optional<int>& camera, base::Duration span);

  const MemoryBenchOptions options_;
  const base::Clock& clock_;
  MemoryReport& report_;
  std::optional<MemoryDayFigures> day_;
  std::optional<engine::Engine> engine_;
};

}  // namespace vigil::bench
