// What CUDA implementations share: numbers of our types, launches, reductions. Included by .cu files only.
#pragma once

#include <cstdint>

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

#include "kernels/device/cuda_queue.h"
#include "kernels/device/dtype.h"
#include "kernels/device/stream.h"

namespace vigil::kernels::cuda {

/// The CUDA stream behind `stream`, with its GPU made current on this thread.
inline cudaStream_t queue_of(const Stream& stream) {
  stream.cuda_queue().bind();
  return stream.cuda_queue().stream();
}

inline unsigned blocks_for(std::int64_t items, std::int64_t each) {
  return static_cast<unsigned>((items + each - 1) / each);
}

__device__ __forceinline__ float number(float value) {
  return value;
}
__device__ __forceinline__ float number(__nv_bfloat16 value) {
  return __bfloat162float(value);
}
__device__ __forceinline__ float number(__half value) {
  return __half2float(value);
}

__device__ __forceinline__ float number(__nv_fp8_e4m3 value) {
  return static_cast<float>(value);
}

template <typename T>
__device__ __forceinline__ T rounded(float value);
template <>
__device__ __forceinline__ float rounded<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ __nv_bfloat16 rounded<__nv_bfloat16>(float value) {
  return __float2bfloat16_rn(value);
}

/// Calls `run` with a value of the CUDA type of `dtype`, f32 or bf16, for whose type it is a template.
template <typename Run>
void with_type(DType dtype, const Run& run) {
  if (dtype == DType::f32) {
    run(float{});
  } else {
    run(__nv_bfloat16{});
  }
}

/// `count` neighbouring elements that are read and written at once: 16 bytes at most.
template <typename T, int count>
struct alignas(sizeof(T) * count) Pack {
  T values[count];
};

/// Whether rows that begin at `data`, `stride` elements apart and `cols` long, can be taken in packs of
/// `count`.
inline bool packs(const void* data, std::int64_t stride, std::int64_t cols, std::size_t element, int count) {
  return reinterpret_cast<std::uintptr_t>(data) % (element * static_cast<std::size_t>(count)) == 0 &&
         stride % count == 0 && cols % count == 0;
}

__device__ __forceinline__ float warp_sum(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffffU, value, offset);
  return value;
}

__device__ __forceinline__ float warp_max(float value) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    value = fmaxf(value, __shfl_xor_sync(0xffffffffU, value, offset));
  return value;
}

}  // namespace vigil::kernels::cuda
