#include <cmath>

#include "kernels/device/cpu.h"
#include "kernels/rope/rope_angle.h"
#include "kernels/rope/rope_backends.h"

namespace vigil::kernels {
namespace {

VIGIL_INLINE void store(float* to, float value) {
  *to = value;
}
VIGIL_INLINE void store(bf16* to, float value) {
  *to = to_bf16(value);
}

template <typename T>
VIGIL_INLINE void rotate(Matrix x, std::int64_t head_dim, const float* cos, const float* sin,
                         std::int64_t begin, std::int64_t end) {
  const std::int64_t half = head_dim / 2;
  const std::int64_t heads = x.cols / head_dim;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* c = cos + i * half;
    const float* s = sin + i * half;
    for (std::int64_t h = 0; h < heads; ++h) {
      T* low = x.row<T>(i) + h * head_dim;
      T* high = low + half;
#pragma omp simd
      for (std::int64_t j = 0; j < half; ++j) {
        const float a = to_float(low[j]);
        const float b = to_float(high[j]);
        store(low + j, a * c[j] - b * s[j]);
        store(high + j, b * c[j] + a * s[j]);
      }
    }
  }
}

VIGIL_SIMD void rotate_f32(Matrix x, std::int64_t head_dim, const float* cos, const float* sin,
                           std::int64_t begin, std::int64_t end) {
  rotate<float>(x, head_dim, cos, sin, begin, end);
}

VIGIL_SIMD void rotate_bf16(Matrix x, std::int64_t head_dim, const float* cos, const float* sin,
                            std::int64_t begin, std::int64_t end) {
  rotate<bf16>(x, head_dim, cos, sin, begin, end);
}

}  // namespace

void cpu::rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin) {
  parallel_blocks(stream, x.rows, 64, [&](std::int64_t begin, std::int64_t end) {
    if (x.dtype == DType::f32) {
      rotate_f32(x, head_dim, cos, sin, begin, end);
    } else {
      rotate_bf16(x, head_dim, cos, sin, begin, end);
    }
  });
}

void cpu::rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                      const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                      float* sin) {
  parallel_blocks(stream, rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < pairs; ++j) {
        const RopeFrequency& frequency = frequencies[j];
        const std::int32_t position = positions[i][static_cast<std::size_t>(frequency.axis)];
        if (precision == RopeAngles::wide) {
          const double angle = angle_within_turn(position, frequency.inverse);
          cos[i * pairs + j] = static_cast<float>(std::cos(angle));
          sin[i * pairs + j] = static_cast<float>(std::sin(angle));
        } else {
          const float angle = static_cast<float>(position) * frequency.inverse;
          cos[i * pairs + j] = std::cos(angle);
          sin[i * pairs + j] = std::sin(angle);
        }
      }
  });
}

}  // namespace vigil::kernels
