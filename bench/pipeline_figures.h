// What was seen of a pipeline while so many cameras ran, and whether it held them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bench/losses.h"
#include "bench/window_log.h"

namespace vigil::bench {

struct PipelineFigures {
  int cameras = 0;
  double seconds = 0;
  std::vector<AnsweredWindow> windows;
  /// Windows that became due, by the cameras' strides.
  double due = 0;
  Losses lost;
  std::optional<double> least_share;
  /// Seconds of each piece of work, by stage: "decode" up to a sampled frame, "vision" a pass of the tower,
  /// "language" a pass of windows and texts, "target" one of texts on another device, "prefill" from a
  /// window's first pass to its answers, "alerts" from a window's last frame until its alert is out.
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

  /// Whether no window and no frame was lost and 95 of 100 windows were answered within their stride; and
  /// told, if all are.
  bool held(double stride) const;
};

}  // namespace vigil::bench
