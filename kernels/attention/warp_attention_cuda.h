// The online softmax of one query by one warp: for any type and head, where no faster kernel takes it.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "kernels/attention/attention.h"
#include "kernels/device/cuda.cuh"

namespace vigil::kernels {

inline constexpr int kWarpAttentionThreads = 256;
/// Elements of a head that one lane holds, at most.
inline constexpr int kMostOfLane = static_cast<int>(kMostHeadDimOnGpu / 32);

inline void check_warp_head(std::int64_t head_dim) {
  if (head_dim > kMostHeadDimOnGpu)
    throw std::invalid_argument("attention: heads of " + std::to_string(head_dim) + " elements, at most " +
                                std::to_string(kMostHeadDimOnGpu) + " on a GPU");
}

/// The online softmax of one query over `count` keys, by one warp: element d of the head is in lane d % 32.
template <typename T, typename Key, typename Value>
__device__ void warp_attend(const T* query, std::int64_t count, int head_dim, float scale, const Key& key,
                            const Value& value, T* out) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  float q[kMostOfLane];
  float sums[kMostOfLane];
#pragma unroll
  for (int i = 0; i < kMostOfLane; ++i) {
    const int d = lane + 32 * i;
    q[i] = d < head_dim ? cuda::number(query[d]) * scale : 0.0F;
    sums[i] = 0;
  }
  float largest = -INFINITY;
  float total = 0;
  for (std::int64_t j = 0; j < count; ++j) {
    const T* k = key(j);
    const T* v = value(j);
    float score = 0;
#pragma unroll
    for (int i = 0; i < kMostOfLane; ++i)
      if (const int d = lane + 32 * i; d < head_dim) score += q[i] * cuda::number(k[d]);
    score = cuda::warp_sum(score);
    const float now = fmaxf(largest, score);
    const float shift = now == -INFINITY ? 0.0F : now;  // infinities apart: no key weighs anything yet
    const float kept = __expf(largest - shift);
    const float weight = __expf(score - shift);
    total = total * kept + weight;
#pragma unroll
    for (int i = 0; i < kMostOfLane; ++i)
      if (const int d = lane + 32 * i; d < head_dim) sums[i] = sums[i] * kept + weight * cuda::number(v[d]);
    largest = now;
  }
#pragma unroll
  for (int i = 0; i < kMostOfLane; ++i)
    if (const int d = lane + 32 * i; d < head_dim) out[d] = cuda::rounded<T>(sums[i] / total);
}

}  // namespace vigil::kernels
