#include <cmath>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/quantize/quantize_cpu.h"
#include "kernels/rms_norm/rms_norm_backends.h"

namespace vigil::kernels {
namespace {

template <typename Out>
VIGIL_INLINE Out narrow(float value) {
  if constexpr (sizeof(Out) == 4) {
    return value;
  } else {
    return to_bf16(value);
  }
}

template <typename Out>
VIGIL_INLINE void norm_rows(ConstMatrix x, const float* weight, float epsilon, Matrix out, std::int64_t begin,
                            std::int64_t end) {
  const std::int64_t n = x.cols;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* in = x.row<float>(i);
    Out* to = out.row<Out>(i);
    float squares = 0;
#pragma omp simd reduction(+ : squares)
    for (std::int64_t j = 0; j < n; ++j) squares += in[j] * in[j];
    const float scale = 1.0F / std::sqrt(squares / static_cast<float>(n) + epsilon);
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) to[j] = narrow<Out>(in[j] * scale * weight[j]);
  }
}

VIGIL_SIMD void norm_to_f32(ConstMatrix x, const float* weight, float epsilon, Matrix out, std::int64_t begin,
                            std::int64_t end) {
  norm_rows<float>(x, weight, epsilon, out, begin, end);
}

VIGIL_SIMD void norm_to_bf16(ConstMatrix x, const float* weight, float epsilon, Matrix out,
                             std::int64_t begin, std::int64_t end) {
  norm_rows<bf16>(x, weight, epsilon, out, begin, end);
}

}  // namespace

void cpu::rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  parallel_blocks(stream, x.rows, 64, [&](std::int64_t begin, std::int64_t end) {
    if (out.dtype == DType::f32) {
      norm_to_f32(x, weight, epsilon, out, begin, end);
    } else if (out.dtype == DType::e4m3) {
      std::vector<float> normed(static_cast<std::size_t>(x.cols));
      for (std::int64_t i = begin; i < end; ++i) {
        ConstMatrix row = x;
        row.data = x.row<float>(i);
        norm_to_f32(row, weight, epsilon, dense(normed.data(), DType::f32, 1, x.cols), 0, 1);
        quantize_row(normed.data(), out, i);
      }
    } else {
      norm_to_bf16(x, weight, epsilon, out, begin, end);
    }
  });
}

}  // namespace vigil::kernels
