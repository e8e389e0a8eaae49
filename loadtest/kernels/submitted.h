// What benches of operations have in common: the time of what is submitted to a stream, and of a copy.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/stream.h"

/// Times are medians of `runs`, after one that does not count, each of `at_once` submitted one behind the
/// other, by the one.
struct Submitted {
  vigil::kernels::Stream stream;
  int at_once, runs;

  double median_us(const std::function<void()>& submit) {
    submit();
    stream.synchronize();
    std::vector<double> took;
    for (int run = 0; run < runs; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      for (int i = 0; i < at_once; ++i) submit();
      stream.synchronize();
      took.push_back(
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
          at_once);
    }
    std::nth_element(took.begin(), took.begin() + runs / 2, took.end());
    return took[static_cast<std::size_t>(runs / 2)];
  }

  /// Of a copy on the device that reads and writes so many bytes together.
  double copy_us(std::int64_t bytes) {
    const auto half = static_cast<std::size_t>(bytes / 2);
    const vigil::kernels::Buffer from(stream, half), to(stream, half);
    return median_us([&] { vigil::kernels::copy(stream, to.data(), from.data(), half); });
  }
};
