// Decode attention's blocks: what they share, where it lies in shared memory, and which pages are whose.
#pragma once

#include <cstdint>

#include "kernels/attention/decode_attention_cuda.h"
#include "kernels/attention/kv_map_cuda.h"

namespace vigil::kernels::cuda::decode {

inline constexpr int kWarps = 4;  // that compute, 16 keys of a page each; one more copies
inline constexpr int kComputing = kWarps * 32;
inline constexpr int kThreads = kComputing + 32;
inline constexpr int kWarpKeys = kPageTokens / kWarps;
inline constexpr int kStages = 3;
inline constexpr int kBarrier = 1;  // of the computing warps

/// What the computing warps leave for each other in shared memory.
template <int kHeadDim>
struct Found {
  // Of each warp and head: the sum (8 columns more keep rows on different banks), the largest score, the
  // total.
  float sum[kWarps][kDecodeGroup][kHeadDim + 8];
  float largest[kWarps][kDecodeGroup];
  float total[kWarps][kDecodeGroup];
};

template <int kHeadDim>
struct Layout {
  static constexpr int kHalves = kHeadDim / kBoxColumns;
  static constexpr int kBoxBytes = kPageTokens * kBoxColumns * 2;
  static constexpr int kPageBytes = kHalves * kBoxBytes;  // keys, or values
  static constexpr int kBarriersAt = kStages * 2 * kPageBytes;
  static constexpr int kFoundAt = kBarriersAt + 2 * kStages * 8;
  static constexpr int kSequencesAt = kFoundAt + static_cast<int>(sizeof(Found<kHeadDim>));
  static constexpr int kBytes =
      kSequencesAt + (3 * kDecodeSequences + 1) * 4 + 1024;  // 1,024: to align the start
  static_assert(kFoundAt % 16 == 0 && kBytes <= 232448);
};

/// Where the parts of a (sequence, KV head) are.
struct PartsOf {
  std::int32_t first;  // of the parts
  std::int32_t count;  // 0: one block found all, and wrote the answer
};

struct Arguments {
  DecodeAttention call;
  std::int32_t page_rows;   // rows of the map from page to page
  std::int32_t value_rows;  // and from key to value
  float scale;              // of the scores, times log2(e)
  float* parts;             // [grid + sequences * kv_heads][floats_of_part()]
  PartsOf* parts_of;        // [sequences * kv_heads]
};

/// Floats of one part: a sum for each head, the largest scores, the totals; a multiple of 16 bytes.
__host__ __device__ constexpr int floats_of_part(int group, int head_dim) {
  return (group * (head_dim + 2) + 3) / 4 * 4;
}

/// The row of work: sequence s owns units [start[s], start[s + 1]), KV head by KV head, page by page.
struct Work {
  const std::int32_t* start;
  const std::int32_t* position;
  const std::int32_t* first_page;
  int sequences;
  int total;
  int blocks;  // that have any

  struct Place {
    int sequence, head, page, pages;
  };
  __device__ Place find(int unit) const {
    int low = 0;
    int high = sequences - 1;
    while (low <
           high) {  // the last sequence that starts at or before the unit; empty ones start with the next
      const int middle = (low + high + 1) / 2;
      if (start[middle] <= unit)
        low = middle;
      else
        high = middle - 1;
    }
    const int pages = position[low] / kPageTokens + 1;
    const int within = unit - start[low];
    return {low, within / pages, within % pages, pages};
  }
  __device__ int first_unit(int block) const {
    return static_cast<int>(std::int64_t{block} * total / blocks);
  }
  __device__ int block_of(int unit) const {
    return static_cast<int>(((std::int64_t{unit} + 1) * blocks - 1) / total);
  }
};

/// Reads the sequences' lengths into shared memory and adds them up. The whole block.
__device__ __forceinline__ Work plan(const DecodeAttention& call, std::int32_t* memory) {
  std::int32_t* start = memory;
  std::int32_t* position = start + kDecodeSequences + 1;
  std::int32_t* first_page = position + kDecodeSequences;
  for (int s = threadIdx.x; s < call.sequences; s += kThreads) {
    position[s] = call.position[s];
    first_page[s] = call.first_page[s];
  }
  __syncthreads();
  if (threadIdx.x < 32) {
    int sum = 0;
    for (int first = 0; first < call.sequences; first += 32) {
      const int s = first + static_cast<int>(threadIdx.x);
      const int units =
          s < call.sequences && position[s] >= 0 ? (position[s] / kPageTokens + 1) * call.kv_heads : 0;
      int before = units;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFF, before, step);
        if (static_cast<int>(threadIdx.x) >= step) before += other;
      }
      if (s < call.sequences) start[s] = sum + before - units;
      sum += __shfl_sync(0xFFFFFFFF, before, 31);
    }
    if (threadIdx.x == 0) start[call.sequences] = sum;
  }
  __syncthreads();
  const int total = start[call.sequences];
  return {start, position, first_page, call.sequences, total, min(static_cast<int>(gridDim.x), total)};
}

}  // namespace vigil::kernels::cuda::decode
