// What the benches of the engine have in common: the median of some runs, after some that do not count.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

/// Milliseconds of `once`; `before` each is not counted.
template <class Before, class Once>
double median_ms(Before&& before, Once&& once) {
  constexpr int kWarm = 2;
  constexpr int kRuns = 9;
  std::vector<double> times;
  for (int i = 0; i < kWarm + kRuns; ++i) {
    before();
    const auto begin = std::chrono::steady_clock::now();
    once();
    const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begin;
    if (i >= kWarm) times.push_back(time.count());
  }
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return times[kRuns / 2];
}
