// oneDNN's matrix product behind one call, for 2.x and 3.x. Included by CPU implementations only.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/device/matrix.h"
#include "kernels/linear/linear.h"

namespace vigil::kernels::onednn {

/// The shape of a product; primitives are made once for each and kept by the thread that asked.
struct ProductKey {
  std::int64_t m, n, k;
  std::int64_t x_stride, w_stride, out_stride, multiply_stride;
  DType in, out;
  Activation activation;
  /// w is [n, k] (rows are output features) rather than [k, n].
  bool w_transposed;
  bool bias, accumulate, multiply;
  /// That share the product; `product` sets it, since oneDNN divides the work when the primitive is made.
  int threads = 1;
  friend bool operator==(const ProductKey&, const ProductKey&) = default;
};

/// out = x · w (see ProductKey) on the calling thread's OpenMP settings: inside of a parallel region it runs
/// on one thread. Seconds spent in products are added up process-wide while `measure_products` is on.
void product(const ProductKey& key, const void* x, const void* w, const float* bias, const void* multiply,
             void* out);

}  // namespace vigil::kernels::onednn
