// How much of the engine's time goes into matrix products, and how fast they could be: for benches.
#pragma once

#include "kernels/device/dtype.h"

namespace vigil::run {

/// Process-wide; thread-safe but for `limit`.
struct ProductMeter {
  /// From zero. Costs four clock reads a product from here on.
  static void start();
  /// Wall time in products since `start`.
  static double seconds();
  /// Processor time in products since `start`, over all threads.
  static double cpu_seconds();
  static double flops();

  /// FLOP/s of a product that is large enough to hide everything else (2048 x 2048 x 2048), if `threads`
  /// threads (0: all processors) had their processors for themselves: by processor time, so that it holds on
  /// a busy machine too. The median of some rounds. Stops and clears what `start` began.
  static double limit(kernels::DType compute, int threads = 0);
};

}  // namespace vigil::run
