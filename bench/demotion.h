// What remembering costs the windows of the present: windows' latencies with it and without, in turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "bench/pipeline_figures.h"
#include "engine/kv/history/history_store.h"

namespace vigil::bench {

struct DemotionPlan {
  /// Of one turn with it and one without each; the order is turned around from pair to pair, so that what
  /// else the machine does comes to both. The last turn is one with it, of which pages are left.
  int pairs = 2;
  /// How long a turn counts, after so long in which the change settles.
  double seconds = 16;
  double settle = 8;
};

struct DemotionFigures {
  /// Seconds of each window, of all turns together; and of each turn the 95th of a hundred.
  std::vector<double> with, without;
  std::vector<double> with_p95, without_p95;
  double windows_lost = 0;
  /// Of all windows.
  double p95_with() const;
  double p95_without() const;
};

/// Has the pipeline remember, or not, for so long, and looks on while `seconds` pass.
using MeasureTurn = std::function<PipelineFigures(bool remembers, double settle, double seconds)>;

/// Throws what `measure` throws, and std::runtime_error where a side has no window.
DemotionFigures measure_demotion(const DemotionPlan& plan, const MeasureTurn& measure);

/// What is on a disk of what cameras saw.
struct Remembered {
  /// Of pages that have both forms: bytes of their sketches, and of their keys in INT4.
  std::uint64_t sketch_bytes = 0, int4_bytes = 0;
  std::uint64_t pages = 0, tokens = 0, cells = 0, standing_out = 0;
};
Remembered remembered_in(const history::HistoryStore& store);

}  // namespace vigil::bench
