// Rows of packed blocks, some neighbouring columns at a time. Included by .cu files only, which are compiled
// with -fmad=false.
#pragma once

#include "kernels/packed_kv/packed_kv_cuda.h"

namespace vigil::kernels::cuda {

/// How `count` neighbouring columns of a block are read: what a thread keeps of it for all rows.
template <PackedForm form, int count>
struct Columns {
  __device__ explicit Columns(const std::byte* /*block*/, int /*width*/, int /*column*/) {}
};
template <int count>
struct Columns<PackedForm::int4, count> {
  float base[count], step[count];
  bool odd = false;

  __device__ Columns(const std::byte* block, int width, int column) {
    using Halves = Pack<std::uint16_t, count>;
    const auto* scales = reinterpret_cast<const std::uint16_t*>(block);
    const Halves bases = *reinterpret_cast<const Halves*>(scales + column);
    const Halves steps = *reinterpret_cast<const Halves*>(scales + width + column);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      base[i] = packed::number(bases.values[i]);
      step[i] = packed::number(steps.values[i]);
      odd = odd || steps.values[i] >= 0x8000U;
    }
  }
};

/// `count` neighbouring columns of row `row` of a block of `tokens` rows.
template <PackedForm form, int count>
__device__ __forceinline__ void read_columns(const PackedShape& shape, const std::byte* block, int tokens,
                                             int row, int column, const Columns<form, count>& columns,
                                             float (&to)[count]) {
  const std::byte* at = block + shape.head_bytes(tokens) + row * shape.row_bytes();
  if constexpr (form == PackedForm::bf16) {
    const auto all =
        *reinterpret_cast<const Pack<std::uint16_t, count>*>(at + column * sizeof(std::uint16_t));
#pragma unroll
    for (int i = 0; i < count; ++i) to[i] = packed::number(all.values[i]);
  } else if constexpr (form == PackedForm::fp8) {
    const float scale = packed::number(reinterpret_cast<const std::uint16_t*>(block)[row]);
    const auto all = *reinterpret_cast<const Pack<__nv_fp8x2_storage_t, count / 2>*>(at + column);
#pragma unroll
    for (int i = 0; i < count; i += 2) {
      const __half2 two = __half2(__nv_cvt_fp8x2_to_halfraw2(all.values[i / 2], __NV_E4M3));
      to[i] = __low2float(two) * scale;
      to[i + 1] = __high2float(two) * scale;
    }
  } else {
    std::uint32_t codes = 0;
    if constexpr (count == kColumns) {
      codes = *reinterpret_cast<const std::uint32_t*>(at + column / 2);
    } else {
      codes = *reinterpret_cast<const std::uint16_t*>(at + column / 2);
    }
#pragma unroll
    for (int i = 0; i < count; ++i) {
      // An integer below 2^23 as the lowest bits of a float.
      const float code = __uint_as_float((codes >> (4 * i) & 15U) | 0x4b000000U) - 0x1p23F;
      // One rounding, and no product that is too large: as packed::int4_value.
      to[i] = fmaf(code, fabsf(columns.step[i]), columns.base[i]);
    }
    if (columns.odd) {
#pragma unroll
      for (int i = 0; i < count; ++i)
        if (signbit(columns.step[i]) && (codes >> (4 * i) & 15U) == packed::kNanInt4)
          to[i] = packed::number(packed::kNan);
    }
  }
}

template <int count>
__device__ __forceinline__ void store(float* at, const float (&values)[count]) {
#pragma unroll
  for (int i = 0; i < count; i += 4)
    *reinterpret_cast<float4*>(at + i) = make_float4(values[i], values[i + 1], values[i + 2], values[i + 3]);
}
template <int count>
__device__ __forceinline__ void store(__nv_bfloat16* at, const float (&values)[count]) {
  Pack<__nv_bfloat162, count / 2> all;
#pragma unroll
  for (int i = 0; i < count; i += 2) all.values[i / 2] = __floats2bfloat162_rn(values[i], values[i + 1]);
  *reinterpret_cast<Pack<__nv_bfloat162, count / 2>*>(at) = all;
}

/// One element of a block of `tokens` rows.
__device__ inline float element_of(const PackedShape& shape, const std::byte* block, std::int64_t tokens,
                                   std::int64_t row, std::int64_t column) {
  const auto* scales = reinterpret_cast<const std::uint16_t*>(block);
  const std::byte* at = block + shape.head_bytes(tokens) + row * shape.row_bytes();
  const auto* codes = reinterpret_cast<const std::uint8_t*>(at);
  if (shape.form == PackedForm::bf16)
    return packed::number(reinterpret_cast<const std::uint16_t*>(at)[column]);
  if (shape.form == PackedForm::fp8) return packed::fp8_value(codes[column], scales[row]);
  return packed::int4_value(codes[column / 2] >> (column % 2 * 4) & 15U, scales[column],
                            scales[shape.head_dim + column]);
}

}  // namespace vigil::kernels::cuda
