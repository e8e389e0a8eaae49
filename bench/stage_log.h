// How long each piece of a stage's work took.
#pragma once

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vigil::bench {

/// Thread-safe.
class StageLog {
 public:
  using TimePoint = base::Clock::TimePoint;

  void add(TimePoint begin, TimePoint end) {
    const std::lock_guard lock(mutex_);
    done_.emplace_back(end, std::chrono::duration<double>(end - begin).count());
  }

  /// Seconds of each piece that ended in [from, to); forgets all that ended before `to`.
  std::vector<double> take(TimePoint from, TimePoint to) {
    const std::lock_guard lock(mutex_);
    std::vector<double> seconds;
    std::erase_if(done_, [&](const auto& piece) {
      if (piece.first >= from && piece.first < to) seconds.push_back(piece.second);
      return piece.first < to;
    });
    return seconds;
  }

 private:
  std::mutex mutex_;
  std::vector<std::pair<TimePoint, double>> done_;
};

/// Adds the time until it is destroyed to a log.
class StageTimer {
 public:
  StageTimer(StageLog& log, const base::Clock& clock) : log_(log), clock_(clock), begin_(clock.now()) {}
  ~StageTimer() { log_.add(begin_, clock_.now()); }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;

 private:
  StageLog& log_;
  const base::Clock& clock_;
  StageLog::TimePoint begin_;
};

}  // namespace vigil::bench
