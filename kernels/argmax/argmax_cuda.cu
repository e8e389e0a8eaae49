#include <cmath>

#include "kernels/argmax/argmax_backends.h"
#include "kernels/device/cuda.cuh"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 1024;

struct Best {
  float value;
  std::int32_t column;
};

/// The larger one, the earlier column of equal ones; no column (-1) loses.
__device__ __forceinline__ Best better(Best a, Best b) {
  if (b.column < 0) return a;
  if (a.column < 0 || b.value > a.value || (b.value == a.value && b.column < a.column)) return b;
  return a;
}

__device__ __forceinline__ Best best_of_warp(Best best) {
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2)
    best = better(best, {__shfl_xor_sync(0xffffffffU, best.value, offset),
                         __shfl_xor_sync(0xffffffffU, best.column, offset)});
  return best;
}

/// One block a row.
__global__ void __launch_bounds__(kThreads)
    largest(const float* x, std::int64_t stride, std::int64_t cols, std::int32_t* columns, float* values) {
  const float* row = x + blockIdx.x * stride;
  Best best{-INFINITY, -1};
#pragma unroll 4
  for (std::int64_t j = threadIdx.x; j < cols; j += kThreads)
    if (row[j] > best.value) best = {row[j], static_cast<std::int32_t>(j)};
  __shared__ Best of_warp[kThreads / 32];
  best = best_of_warp(best);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x >= 32) return;
  best = best_of_warp(of_warp[threadIdx.x]);
  if (threadIdx.x != 0) return;
  columns[blockIdx.x] = best.column;
  if (values != nullptr) values[blockIdx.x] = best.value;
}

}  // namespace

void cuda::largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values) {
  largest<<<static_cast<unsigned>(x.rows), kThreads, 0, queue_of(stream)>>>(x.row<float>(0), x.stride, x.cols,
                                                                            columns, values);
  check_launch("largest_columns");
}

}  // namespace vigil::kernels
