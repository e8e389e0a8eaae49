#include "bench/losses.h"

#include <utility>

#include "bench/metric_sum.h"

namespace vigil::bench {
namespace {

void subtract(std::map<std::string, double>& from, const std::map<std::string, double>& what) {
  for (const auto& [name, value] : what) from[name] -= value;
  std::erase_if(from, [](const auto& entry) { return entry.second == 0; });
}

}  // namespace

double Losses::windows_lost() const {
  double total = 0;
  for (const auto& [outcome, count] : windows) total += count;
  return total;
}

bool Losses::to_a_device() const {
  return windows.contains("device_lost") || frames.contains("device_lost") || frames.contains("device_down");
}

Losses losses(const std::string& page) {
  Losses losses{metric_by(page, "vigil_windows_total", "outcome"),
                metric_by(page, "vigil_frames_dropped_total", "reason")};
  losses.windows.erase("answered");
  return since({}, std::move(losses));
}

Losses since(const Losses& earlier, Losses now) {
  subtract(now.windows, earlier.windows);
  subtract(now.frames, earlier.frames);
  return now;
}

}  // namespace vigil::bench
