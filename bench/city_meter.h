// How much of something happens in a simulation, in all and in the worst second.
#pragma once

#include <algorithm>
#include <cstdint>

#include "bench/virtual_thread.h"

namespace vigil::bench {

/// Counts in whole seconds of the simulation's time. Not thread-safe.
class CityMeter {
 public:
  explicit CityMeter(const VirtualTime& time) : time_(time) {}

  void add(double amount) {
    const std::int64_t second = time_.elapsed() / std::chrono::seconds(1);
    if (second != second_) {
      second_ = second;
      in_second_ = 0;
    }
    in_second_ += amount;
    total_ += amount;
    peak_ = std::max(peak_, in_second_);
  }
  void reset() { second_ = -1, in_second_ = total_ = peak_ = 0; }

  double total() const { return total_; }
  /// In the worst second.
  double peak() const { return peak_; }

 private:
  const VirtualTime& time_;
  std::int64_t second_ = -1;
  double in_second_ = 0;
  double total_ = 0;
  double peak_ = 0;
};

/// What can do one thing at a time, and has a queue before it. Not thread-safe.
class CityStation {
 public:
  explicit CityStation(const VirtualTime& time) : time_(time) {}

  /// How long until this work is done as well.
  Nanoseconds take(Nanoseconds work) {
    const Nanoseconds now = time_.elapsed();
    free_at_ = std::max(free_at_, now) + work;
    busy_ += work;
    longest_ = std::max(longest_, free_at_ - now);
    return free_at_ - now;
  }
  void reset() { busy_ = longest_ = Nanoseconds(0); }

  Nanoseconds busy() const { return busy_; }
  /// From when work came until it was done, at most.
  Nanoseconds longest() const { return longest_; }

 private:
  const VirtualTime& time_;
  Nanoseconds free_at_{0};
  Nanoseconds busy_{0};
  Nanoseconds longest_{0};
};

}  // namespace vigil::bench
