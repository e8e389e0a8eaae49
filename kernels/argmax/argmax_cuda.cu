#include <cmath>

#include <cooperative_groups.h>

#include "kernels/argmax/argmax_backends.h"
#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 512;
/// Blocks of a row, a cluster: one alone takes 22 us for the logits of 152,064 tokens.
constexpr int kCluster = 8;

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

/// One cluster a row.
__global__ void __cluster_dims__(kCluster) __launch_bounds__(kThreads)
    largest(const float* x, std::int64_t stride, std::int64_t cols, std::int32_t* columns, float* values) {
  const auto cluster = cooperative_groups::this_cluster();
  const unsigned row_of = blockIdx.x / kCluster;
  const float* row = x + row_of * stride;
  cuda::await_previous();
  Best best{-INFINITY, -1};
#pragma unroll 4
  for (std::int64_t j = cluster.block_rank() * kThreads + threadIdx.x; j < cols; j += kThreads * kCluster)
    if (row[j] > best.value) best = {row[j], static_cast<std::int32_t>(j)};
  __shared__ Best of_warp[kThreads / 32];
  __shared__ Best of_block;
  best = best_of_warp(best);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x < 32) {
    best = best_of_warp(threadIdx.x < kThreads / 32 ? of_warp[threadIdx.x] : Best{-INFINITY, -1});
    if (threadIdx.x == 0) of_block = best;
  }
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x < 32) {
    best = best_of_warp(threadIdx.x < kCluster ? *cluster.map_shared_rank(&of_block, threadIdx.x)
                                               : Best{-INFINITY, -1});
    if (threadIdx.x == 0) {
      columns[row_of] = best.column;
      if (values != nullptr) values[row_of] = best.value;
    }
  }
  cluster.sync();  // the first block has read the others' memory
}

}  // namespace

void cuda::largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values) {
  launch_early(largest, {static_cast<unsigned>(x.rows) * kCluster, kThreads}, queue_of(stream),
               x.row<float>(0), x.stride, x.cols, columns, values);
}

}  // namespace vigil::kernels
