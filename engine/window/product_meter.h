// How much of the engine's time goes into matrix products, and how fast they could be: for benches.
#pragma once

#include "kernels/device/dtype.h"

namespace vigil::window {

/// Process-wide; thread-safe but for `limit`, which measures and wants the machine for itself.
struct ProductMeter {
  /// From zero. Costs four clock reads a product from here on.
  static void start();
  /// Wall time in products since `start`.
  static double seconds();
  /// Processor time in products since `start`, over all threads.
  static double cpu_seconds();
  static double flops();

  /// FLOP/s of a product that is large enough to hide everything else (2048 x 2048 x 2048), on `threads`
  /// threads (0: all processors): the median of some rounds. Takes a fraction of a second.
  static double limit(kernels::DType compute, int threads = 0);
};

}  // namespace vigil::window
