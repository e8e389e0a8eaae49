// Which windows were answered when: what a bench reads a pipeline's latencies and fairness from.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "actors/messages/data.h"
#include "base/clock.h"

namespace vigil::bench {

/// One answered window, in seconds.
struct AnsweredWindow {
  std::string camera;
  base::Clock::TimePoint answered;
  /// From when its last frame was due until its answers.
  double latency = 0;
  /// The pass of the vision tower that its last patch went through, and the time from its first pass of the
  /// language model to its answers.
  double vision = 0;
  double prefill = 0;
  /// The rest of the latency: in queues and on the way between them.
  double waiting = 0;
};

/// Thread-safe.
class WindowLog {
 public:
  void add(const actors::WindowAnswers& window, const actors::WorkSpan& asked);

  /// The windows that were answered in [from, to), in the order of their answers.
  std::vector<AnsweredWindow> between(base::Clock::TimePoint from, base::Clock::TimePoint to) const;

  /// Forgets what was answered before.
  void forget_before(base::Clock::TimePoint time);

 private:
  mutable std::mutex mutex_;
  std::vector<AnsweredWindow> windows_;
};

/// The windows that the camera with the fewest was answered within any `span` of [from, to), over the median
/// of all `cameras` in the same span: 1 is perfectly fair, 0 means that one starved. Spans begin every
/// second. Nothing if no whole span lies within, or nothing was answered in it.
std::optional<double> least_share(const std::vector<AnsweredWindow>& windows,
                                  const std::vector<std::string>& cameras, base::Clock::TimePoint from,
                                  base::Clock::TimePoint to, base::Duration span);

}  // namespace vigil::bench
