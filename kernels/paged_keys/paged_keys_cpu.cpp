#include <cstddef>
#include <cstring>

#include "kernels/device/cpu.h"
#include "kernels/paged_keys/paged_keys_backends.h"

namespace vigil::kernels {
namespace {

VIGIL_INLINE void store(float* to, float value) {
  *to = value;
}
VIGIL_INLINE void store(bf16* to, float value) {
  *to = to_bf16(value);
}

template <typename T>
VIGIL_INLINE void measure(ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to,
                          std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    float sum = 0;
    for (std::int64_t head = 0; head < layer.kv_heads; ++head) {
      const T* fresh = k.row<T>(i) + head * layer.head_dim;
      const T* kept = static_cast<const T*>(layer.base) + layer.offset(slots[i], head);
#pragma omp simd reduction(+ : sum)
      for (std::int64_t d = 0; d < layer.head_dim; ++d) {
        const float difference = to_float(fresh[d]) - to_float(kept[d]);
        sum += difference * difference;
      }
    }
    to[i] = sum;
  }
}

template <typename T>
VIGIL_INLINE void rotate(const std::int32_t* slots, const float* cos, const float* sin, const KvLayer& layer,
                         std::int64_t begin, std::int64_t end) {
  const std::int64_t half = layer.head_dim / 2;
  for (std::int64_t i = begin; i < end; ++i) {
    const float* c = cos + i * half;
    const float* s = sin + i * half;
    for (std::int64_t head = 0; head < layer.kv_heads; ++head) {
      T* low = static_cast<T*>(layer.base) + layer.offset(slots[i], head);
      T* high = low + half;
#pragma omp simd
      for (std::int64_t j = 0; j < half; ++j) {
        const float a = to_float(low[j]);
        const float b = to_float(high[j]);
        // Not a zero of another sign.
        const bool stays = s[j] == 0 && c[j] == 1;
        store(low + j, stays ? a : a * c[j] - b * s[j]);
        store(high + j, stays ? b : b * c[j] + a * s[j]);
      }
    }
  }
}

VIGIL_SIMD void measure_f32(ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to,
                            std::int64_t begin, std::int64_t end) {
  measure<float>(k, slots, layer, to, begin, end);
}

VIGIL_SIMD void measure_bf16(ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to,
                             std::int64_t begin, std::int64_t end) {
  measure<bf16>(k, slots, layer, to, begin, end);
}

VIGIL_SIMD void rotate_f32(const std::int32_t* slots, const float* cos, const float* sin,
                           const KvLayer& layer, std::int64_t begin, std::int64_t end) {
  rotate<float>(slots, cos, sin, layer, begin, end);
}

VIGIL_SIMD void rotate_bf16(const std::int32_t* slots, const float* cos, const float* sin,
                            const KvLayer& layer, std::int64_t begin, std::int64_t end) {
  rotate<bf16>(slots, cos, sin, layer, begin, end);
}

}  // namespace

void cpu::key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer,
                        float* to) {
  parallel_blocks(stream, k.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    if (layer.dtype == DType::f32) {
      measure_f32(k, slots, layer, to, begin, end);
    } else {
      measure_bf16(k, slots, layer, to, begin, end);
    }
  });
}

void cpu::rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                      const float* sin, const KvLayer& layer) {
  parallel_blocks(stream, count, 64, [&](std::int64_t begin, std::int64_t end) {
    if (layer.dtype == DType::f32) {
      rotate_f32(slots, cos, sin, layer, begin, end);
    } else {
      rotate_bf16(slots, cos, sin, layer, begin, end);
    }
  });
}

void cpu::read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
                    std::int64_t layers, std::int64_t layer_stride, Matrix to) {
  const auto element = static_cast<std::int64_t>(size_of(first.dtype));
  const std::int64_t width = first.head_dim * element;
  parallel_blocks(stream, layers * count, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t head = 0; head < first.kv_heads; ++head)
        std::memcpy(static_cast<std::byte*>(to.data) + row * to.stride * element + head * width,
                    static_cast<const std::byte*>(first.base) +
                        (row / count * layer_stride + first.offset(slots[row % count], head)) * element,
                    static_cast<std::size_t>(width));
  });
}

}  // namespace vigil::kernels
