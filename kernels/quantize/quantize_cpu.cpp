#include "kernels/quantize/quantize_cpu.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/quantize/quantize_backends.h"

namespace vigil::kernels {
namespace {

constexpr std::uint32_t kInfinity = 0x7f800000U;

/// The bits of the largest magnitude, which order as the magnitudes do; NaN lies above infinity.
VIGIL_SIMD std::uint32_t largest(const float* values, std::int64_t count) {
  std::uint32_t most = 0;
#pragma omp simd reduction(max : most)
  for (std::int64_t j = 0; j < count; ++j)
    most = std::max(most, std::bit_cast<std::uint32_t>(values[j]) & 0x7fffffffU);
  return most;
}

VIGIL_SIMD void round_all(const float* values, std::int64_t count, float inverse, e4m3* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < count; ++j) to[j] = to_e4m3(values[j] * inverse);
}

}  // namespace

void cpu::quantize_row(const float* values, Matrix out, std::int64_t i) {
  const std::uint32_t most = largest(values, out.cols);
  const float scale =
      most < kInfinity ? std::max(std::bit_cast<float>(most) / kMostE4m3, std::numeric_limits<float>::min())
                       : std::numeric_limits<float>::quiet_NaN();
  out.scales[i] = scale;
  e4m3* to = out.row<e4m3>(i);
  round_all(values, out.cols, 1.0F / scale, to);
  std::fill(to + out.cols, to + e4m3_stride(out.cols), e4m3{});
}

void cpu::quantize_rows(Stream& stream, ConstMatrix x, Matrix out) {
  parallel_blocks(stream, x.rows, 16, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(x.dtype == DType::bf16 ? x.cols : 0));
    for (std::int64_t i = begin; i < end; ++i) {
      if (x.dtype == DType::f32) {
        quantize_row(x.row<float>(i), out, i);
      } else {
        std::transform(x.row<bf16>(i), x.row<bf16>(i) + x.cols, row.begin(),
                       [](bf16 value) { return to_float(value); });
        quantize_row(row.data(), out, i);
      }
    }
  });
}

}  // namespace vigil::kernels
