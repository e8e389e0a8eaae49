// Decode attention's second kernel: puts together what several blocks found of one (sequence, KV head).
#pragma once

#include <cstdint>

#include <cuda_bf16.h>

#include "kernels/attention/decode_attention_work_cuda.h"
#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/online_softmax_cuda.h"
#include "kernels/device/overlap.cuh"

namespace vigil::kernels::cuda::decode {

/// Four columns of a head: sums of values, weighted beside the largest score, and the weights' total.
struct alignas(16) Columns {
  float4 sum = {};
  float largest = kNone;
  float total = 0;

  __device__ __forceinline__ void add(const Columns& other, float scale) {
    const float among = fmaxf(largest, other.largest);
    const float mine = largest == kNone ? 0.0F : exp2_fast((largest - among) * scale);
    const float its = other.largest == kNone ? 0.0F : exp2_fast((other.largest - among) * scale);
    sum.x = mine * sum.x + its * other.sum.x;
    sum.y = mine * sum.y + its * other.sum.y;
    sum.z = mine * sum.z + its * other.sum.z;
    sum.w = mine * sum.w + its * other.sum.w;
    total = mine * total + its * other.total;
    largest = among;
  }
  /// The answer's columns; zero if no key was seen.
  __device__ __forceinline__ void store(__nv_bfloat16* to) const {
    const float factor = total > 0 ? 1 / total : 0.0F;
    *reinterpret_cast<uint2*>(to) =
        make_uint2(pack_bf16(sum.x * factor, sum.y * factor), pack_bf16(sum.z * factor, sum.w * factor));
  }
};

/// What one thread adds up: every `ways`th part from `way` on, of four columns of a head. `kAtOnce` are in
/// flight.
template <int kAtOnce>
__device__ __forceinline__ Columns add_parts(const float* sums, const float* ends, int stride, int group,
                                             int count, int way, int ways, float scale) {
  Columns columns;
  for (int from = way; from < count; from += kAtOnce * ways) {
    // Loads beyond the last part repeat it and count nothing: with conditions they would wait for each other.
    Columns part[kAtOnce];
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int at = min(from + i * ways, count - 1) * stride;
      part[i] = {*reinterpret_cast<const float4*>(sums + at), ends[at], ends[at + group]};
    }
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      if (from + i * ways >= count) part[i].largest = kNone;
      columns.add(part[i], scale);
    }
  }
  return columns;
}

inline constexpr int kCombining = 256;  // threads of a block

/// A block a query head of a sequence (kMany: a KV head). Of one, each `way` has every so manyth part, and
/// they are put together in the end; of a KV head's, each has other heads.
template <int kHeadDim, bool kMany>
__global__ void __launch_bounds__(kCombining) combine_parts(const __grid_constant__ Arguments arguments) {
  constexpr int kLanes = kHeadDim / 4;
  constexpr int kWays = kCombining / kLanes;
  const DecodeAttention& call = arguments.call;
  const int group = call.heads / call.kv_heads;
  const auto sequence = static_cast<int>(blockIdx.y);
  const auto kv_head = static_cast<int>(blockIdx.x) / (kMany ? 1 : group);
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int way = static_cast<int>(threadIdx.x) / kLanes;
  let_next_begin();
  await_previous();
  if (call.position[sequence] < 0) return;
  const PartsOf of = arguments.parts_of[sequence * call.kv_heads + kv_head];
  if (of.count == 0) return;

  const int stride = floats_of_part(group, kHeadDim);
  const float* sums = arguments.parts + std::int64_t{of.first} * stride + 4 * lane;
  const float* ends = arguments.parts + std::int64_t{of.first} * stride + group * kHeadDim;
  auto* out = static_cast<__nv_bfloat16*>(call.out) + sequence * call.out_stride +
              std::int64_t{kv_head} * group * kHeadDim + 4 * lane;
  if constexpr (kMany) {
    constexpr int kAtOnce = 4;
    for (int head = way; head < group; head += kWays)
      add_parts<kAtOnce>(sums + head * kHeadDim, ends + head, stride, group, of.count, 0, 1, arguments.scale)
          .store(out + head * kHeadDim);
  } else {
    constexpr int kAtOnce = 9;  // 66 parts take one turn with heads of 128
    const int head = static_cast<int>(blockIdx.x) % group;
    __shared__ Columns of_ways[kWays][kLanes];
    Columns columns = add_parts<kAtOnce>(sums + head * kHeadDim, ends + head, stride, group, of.count, way,
                                         kWays, arguments.scale);
    of_ways[way][lane] = columns;
    __syncthreads();
    if (way != 0) return;
#pragma unroll
    for (int other = 1; other < kWays; ++other) columns.add(of_ways[other][lane], arguments.scale);
    columns.store(out + head * kHeadDim);
  }
}

}  // namespace vigil::kernels::cuda::decode
