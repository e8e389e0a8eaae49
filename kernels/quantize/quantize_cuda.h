// Rows of numbers to rows of E4M3 by a block of threads, for all kernels that have such results. Included by
// .cu files only.
#pragma once

#include "kernels/device/cuda.cuh"

namespace vigil::kernels::cuda {

/// The bits of a number's magnitude, which order as magnitudes do; NaN lies above infinity.
__device__ __forceinline__ std::uint32_t magnitude(float value) {
  return __float_as_uint(value) & 0x7fffffffU;
}

struct RowScale {
  float scale;
  float inverse;
};

/// The scale of a row of which each of the block's threads has seen a part, from the largest `magnitude` of
/// each part. All threads call it.
template <int threads>
__device__ __forceinline__ RowScale row_scale(std::uint32_t most) {
  __shared__ std::uint32_t of_warp[threads / 32];
  most = __reduce_max_sync(0xffffffffU, most);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = most;
  __syncthreads();
#pragma unroll
  for (int warp = 0; warp < threads / 32; ++warp) most = max(most, of_warp[warp]);
  constexpr std::uint32_t kInfinity = 0x7f800000U;
  constexpr float kSmallest = 0x1p-126F;
  const float scale =
      most < kInfinity ? fmaxf(__uint_as_float(most) / kMostE4m3, kSmallest) : __uint_as_float(0x7fc00000U);
  return {scale, 1.0F / scale};
}

/// `count` neighbouring numbers in E4M3.
template <int count>
__device__ __forceinline__ Pack<std::uint8_t, count> rounded_e4m3(const float (&values)[count],
                                                                  float inverse) {
  Pack<std::uint8_t, count> codes;
  if constexpr (count == 1) {
    codes.values[0] = __nv_cvt_float_to_fp8(values[0] * inverse, __NV_SATFINITE, __NV_E4M3);
  } else {
#pragma unroll
    for (int j = 0; j < count; j += 2) {
      const __nv_fp8x2_storage_t two = __nv_cvt_float2_to_fp8x2(
          make_float2(values[j] * inverse, values[j + 1] * inverse), __NV_SATFINITE, __NV_E4M3);
      codes.values[j] = static_cast<std::uint8_t>(two);
      codes.values[j + 1] = static_cast<std::uint8_t>(two >> 8U);
    }
  }
  return codes;
}

/// The zeros that follow a row.
template <int threads>
__device__ __forceinline__ void pad_e4m3(std::uint8_t* row, int cols) {
  const int at = cols + static_cast<int>(threadIdx.x);
  if (at < (cols + 15) / 16 * 16) row[at] = 0;
}

}  // namespace vigil::kernels::cuda
