// How many cameras are held: which numbers are measured, and what comes of it.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "bench/pipeline_figures.h"

namespace vigil::bench {

/// What is to be measured.
struct CapacityPlan {
  /// Of a search: where it begins, and what it does not exceed; both at least 1.
  int start = 16;
  int most = 1024;
  /// These numbers, one after the other, and no search.
  std::vector<int> exactly = {};
  /// At the end, so many times the cameras that were held; 0: not.
  double overload = 0;
  /// How long a number is measured.
  double seconds = 32;
};

struct Capacity {
  /// The most cameras that were held; 0 if none were.
  int held = 0;
  /// Whether there are figures to go by: of a search, of a number that was held; of numbers that were named,
  /// of any.
  bool measured = false;
};

/// Runs so many cameras for so long, or, if `may_stop`, until it is clear that they are too many.
using MeasureCameras = std::function<PipelineFigures(int cameras, double seconds, bool may_stop)>;

/// Is told of every number that was measured: a "step"; "cameras_held", the best step of a search once more;
/// "overload". `held`: the most cameras that were held, as far as that is known by then.
using TellStep = std::function<void(const char* figure, const PipelineFigures&, std::optional<int> held)>;

/// `stride`: of the cameras' windows, in seconds; within it windows have to be answered. Throws what
/// `measure` and `tell` throw, and std::invalid_argument for a search that cannot begin.
Capacity measure_capacity(const CapacityPlan& plan, double stride, const MeasureCameras& measure,
                          const TellStep& tell);

}  // namespace vigil::bench
