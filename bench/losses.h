// What a pipeline lost, as its metrics tell.
#pragma once

#include <map>
#include <string>

namespace vigil::bench {

struct Losses {
  /// Windows that got no answers, by outcome: all that there are but `answered`.
  std::map<std::string, double> windows;
  /// Frames that were dropped, by reason.
  std::map<std::string, double> frames;

  /// All of them.
  double windows_lost() const;
  bool any() const { return !windows.empty() || !frames.empty(); }
  /// Whether some were lost because their device does not work any more.
  bool to_a_device() const;
};

/// Since the pipeline was started, of a page of its metrics in Prometheus' text format.
Losses losses(const std::string& page);

/// What was lost after `earlier`.
Losses since(const Losses& earlier, Losses now);

}  // namespace vigil::bench
