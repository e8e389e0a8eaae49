#include <omp.h>

#include "kernels/linear/linear_backends.h"
#include "kernels/linear/onednn.h"

namespace vigil::kernels {
namespace {

/// Threads for a product: one where waking the others costs more than they save, as in decoding with a small
/// model.
int threads_for(const Stream& stream, ConstMatrix x, ConstMatrix w) {
  constexpr std::int64_t kWorthSharing = 2'000'000;  // multiply-adds; some 10 us on one core
  return x.rows * x.cols * w.rows < kWorthSharing ? 1 : stream.threads();
}

}  // namespace

void cpu::linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options) {
  omp_set_num_threads(threads_for(stream, x, w));  // of the calling thread only
  const bool multiply = options.multiply.data != nullptr;
  const onednn::ProductKey key{.m = x.rows,
                               .n = w.rows,
                               .k = x.cols,
                               .x_stride = x.stride,
                               .w_stride = w.stride,
                               .out_stride = out.stride,
                               .multiply_stride = multiply ? options.multiply.stride : 0,
                               .in = x.dtype,
                               .out = out.dtype,
                               .activation = options.activation,
                               .w_transposed = true,
                               .bias = options.bias.values != nullptr,
                               .accumulate = options.accumulate,
                               .multiply = multiply};
  onednn::product(key, x.data, w.data, options.bias.values, options.multiply.data, out.data);
}

}  // namespace vigil::kernels
