#include "bench/pipeline_figures.h"

#include "bench/statistics.h"

namespace vigil::bench {

bool PipelineFigures::held(double stride) const {
  // Some are still under way when one stops to look.
  constexpr double kThrough = 0.8;
  std::vector<double> latencies;
  latencies.reserve(windows.size());
  for (const auto& window : windows) latencies.push_back(window.latency);
  const bool all = !lost.any() && static_cast<double>(windows.size()) >= kThrough * due;
  if (!all || percentile(latencies, 0.95) > stride) return false;
  if (!alerts_due) return true;
  const auto told = stages.find("alerts");
  return told != stages.end() && static_cast<double>(told->second.size()) >= kThrough * *alerts_due &&
         percentile(told->second, 0.95) <= stride;
}

}  // namespace vigil::bench
