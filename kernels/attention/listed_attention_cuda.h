// Attention over pages and lists on Hopper: the row of work that blocks divide, and one warp's arithmetic.
// Included by .cu files only.
#pragma once

#include <cstdint>

#include <cub/block/block_scan.cuh>
#include <cuda_bf16.h>

#include "kernels/attention/decode_attention_share_cuda.h"
#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/indexed_attention_cuda.h"
#include "kernels/attention/kv_map_cuda.h"
#include "kernels/attention/online_softmax_cuda.h"

namespace vigil::kernels::cuda::listed {

inline constexpr int kWarps = 4;
inline constexpr int kThreads = kWarps * 32;
inline constexpr int kRows = kWarps * 16;  // (query, head) rows that a block has at once
inline constexpr int kStages = 3;          // of 64 keys and values each
inline constexpr int kMostPairs = 1024;    // of a launch

/// Where the parts of a pair are.
struct PartsOf {
  std::int32_t first;
  std::int32_t count;  // 0: one block found all, and wrote the answer
};

struct Arguments {
  const __nv_bfloat16* q;
  std::int64_t q_stride;
  __nv_bfloat16* out;
  std::int64_t out_stride;
  const __nv_bfloat16* base;
  std::int64_t page_stride, value_offset;
  const __nv_bfloat16* keys;
  const __nv_bfloat16* values;
  const std::int32_t* counts;
  std::int64_t capacity;
  /// None: lists are those of the segments, in their order.
  const std::int32_t* of_segment;
  const std::int32_t* page_ids;
  const std::uint64_t* live;
  const std::int32_t* position;
  const std::int32_t* first_page;
  const std::int32_t* row_segment;
  /// None where each segment asks with one query: then tile t is row t.
  const QueryTile* tiles;
  std::int32_t first_tile, tile_count;
  std::int32_t kv_heads, group;
  /// Parts of at most kRows (query, head) rows of a tile.
  std::int32_t slices;
  float scale;  // of the scores, times log2(e)
  /// [grid + pairs][kRows * (head_dim + 2)]: sums, then the largest scores, then the totals; of row r and the
  /// keys of way w the ((w * tiles_of(rows) + r / 16) * 16 + r % 16)th.
  float* parts;
  PartsOf* parts_of;

  __host__ __device__ int pairs() const { return tile_count * slices * kv_heads; }
};

__host__ __device__ constexpr int floats_of_part(int head_dim) {
  return kRows * (head_dim + 2);
}

/// Tiles of 16 rows among which warps are divided; what is left divides the keys.
__device__ __forceinline__ int tiles_of(int rows) {
  return rows <= 16 ? 1 : rows <= 32 ? 2 : 4;
}

/// The lowest `count` bits.
__device__ __forceinline__ std::uint64_t lowest(int count) {
  return count <= 0 ? 0 : count >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
}

/// A slice of a tile's rows, and one KV head: rows [begin, begin + rows) of the tile's (query, head) rows.
struct Pair {
  int first_row, begin, rows, head, first_page;
  int last;          // the place of the last row's own key
  int pages;         // up to there
  int list, listed;  // of a segment without lists: none, of nothing

  __device__ Pair(const Arguments& all, int index) {
    head = index % all.kv_heads;
    index /= all.kv_heads;
    begin = index % all.slices * kRows;
    const int t = all.first_tile + index / all.slices;
    int queries = 1;
    if (all.tiles != nullptr) {
      const QueryTile tile = all.tiles[t];
      first_row = tile.first_row;
      queries = tile.rows;
      first_page = tile.first_page;
    } else {
      first_row = t;
      first_page = all.first_page[t];
    }
    rows = max(0, min(kRows, queries * all.group - begin));
    last = rows == 0 ? -1 : all.position[first_row + (begin + rows - 1) / all.group];
    pages = rows == 0 ? 0 : last / kPageTokens + 1;
    const int segment = all.row_segment[first_row];
    const int sequence = all.of_segment == nullptr ? segment : all.of_segment[segment];
    list = sequence * all.kv_heads + head;
    listed = rows == 0 || sequence < 0
                 ? 0
                 : static_cast<int>(max(std::int64_t{0}, min(std::int64_t{all.counts[list]}, all.capacity)));
  }

  /// Of 64 keys each: pages first, then the list.
  __device__ int units() const { return pages + (listed + kPageTokens - 1) / kPageTokens; }
  __device__ int query(const Arguments& all, int row) const { return first_row + (begin + row) / all.group; }
  /// Where the row's elements are, of q and of out.
  __device__ std::int64_t place(const Arguments& all, int row, std::int64_t stride, int head_dim) const {
    return query(all, row) * stride + std::int64_t{head * all.group + (begin + row) % all.group} * head_dim;
  }
};

/// 64 keys and values, rows of head_dim elements.
struct Unit {
  const __nv_bfloat16* keys = nullptr;
  const __nv_bfloat16* values = nullptr;
  /// Which of them any row sees.
  std::uint64_t seen = 0;

  __device__ Unit() = default;
  __device__ Unit(const Arguments& all, const Pair& pair, int unit, int head_dim) {
    if (unit < pair.pages) {
      const int at = pair.first_page + unit;
      keys = all.base + all.page_ids[at] * all.page_stride + std::int64_t{pair.head} * kPageTokens * head_dim;
      values = keys + all.value_offset;
      seen = all.live[at] & lowest(pair.last + 1 - unit * kPageTokens);
    } else {
      const int first = (unit - pair.pages) * kPageTokens;
      const std::int64_t at = (pair.list * all.capacity + first) * head_dim;
      keys = all.keys + at;
      values = all.values + at;
      seen = lowest(pair.listed - first);
    }
  }
};

/// The row of work: pair p owns units [start[p], start[p + 1]).
struct Work {
  const std::int32_t* start;
  int pairs;
  int total;
  int blocks;  // that have any

  /// The last pair that starts at or before the unit; those of no units start with the next.
  __device__ int pair_of(int unit) const {
    int low = 0;
    int high = pairs - 1;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (start[middle] <= unit)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
  __device__ int first_unit(int block) const {
    return static_cast<int>(std::int64_t{block} * total / blocks);
  }
  __device__ int block_of(int unit) const {
    return static_cast<int>(((std::int64_t{unit} + 1) * blocks - 1) / total);
  }
};

/// Adds up what the pairs have. The whole block; `start` has room for all of them and one more.
__device__ __forceinline__ Work plan(const Arguments& all, std::int32_t* start) {
  using Scan = cub::BlockScan<int, kThreads>;
  __shared__ typename Scan::TempStorage scan;
  int sum = 0;
  for (int first = 0; first < all.pairs(); first += kThreads) {
    const int p = first + static_cast<int>(threadIdx.x);
    const int units = p < all.pairs() ? Pair(all, p).units() : 0;
    int before = 0;
    int more = 0;
    Scan(scan).ExclusiveSum(units, before, more);
    if (p < all.pairs()) start[p] = sum + before;
    sum += more;
    __syncthreads();
  }
  if (threadIdx.x == 0) start[all.pairs()] = sum;
  __syncthreads();
  return {start, all.pairs(), sum, min(static_cast<int>(gridDim.x), sum)};
}

/// One warp's rows of a pair: 16 of them, of which a thread has lane / 4 and lane / 4 + 8, over `tiles` times
/// 16 of each unit's keys.
template <int kHeadDim>
struct Rows {
  std::uint32_t query[kHeadDim / 4];
  float sum[kHeadDim / 8][4];
  float largest[2];
  float total[2];  // of this thread's columns
  int own[2];      // the places of the queries' own keys
  int tiles, tile, first_key;
  bool idle;

  __device__ __forceinline__ void begin(const Arguments& all, const Pair& pair) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int warp = static_cast<int>(threadIdx.x) / 32;
    tiles = tiles_of(pair.rows);
    tile = warp % tiles;
    first_key = warp / tiles * tiles * 16;
    idle = tile * 16 >= pair.rows;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = tile * 16 + lane / 4 + 8 * half;
      const bool there = row < pair.rows;
      own[half] = there ? all.position[pair.query(all, row)] : -1;
      const __nv_bfloat16* from = all.q + (there ? pair.place(all, row, all.q_stride, kHeadDim) : 0);
#pragma unroll
      for (int i = half; i < kHeadDim / 4; i += 2)
        query[i] =
            there ? *reinterpret_cast<const std::uint32_t*>(from + i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2)
                  : 0;
      largest[half] = kNone;
      total[half] = 0;
    }
#pragma unroll
    for (auto& four : sum)
#pragma unroll
      for (float& x : four) x = 0;
  }

  /// 16 times kSteps keys of a stage from `key` on. seen[half]: bit i tells that the row sees the stage's key
  /// i.
  template <int kSteps>
  __device__ __forceinline__ void add(std::uint32_t keys, std::uint32_t values, int key,
                                      const std::uint64_t (&seen)[2], float scale) {
    constexpr int kRowBytes = kHeadDim * 2;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    // Of few keys even and odd steps are apart, for shorter chains.
    constexpr int kChains = kSteps == 1 ? 2 : 1;
    float s[kChains][2 * kSteps][4] = {};
#pragma unroll
    for (int i = 0; i < kHeadDim / 16; ++i)
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        const int row = key + 16 * step + lane / 16 * 8 + lane % 8;
        const int chunk = 2 * i + lane / 8 % 2;
        std::uint32_t k[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(k[0]), "=r"(k[1]), "=r"(k[2]), "=r"(k[3])
                     : "r"(keys + row * kRowBytes + (chunk ^ (row % 8)) * 16)
                     : "memory");
        decode::multiply(s[i % kChains][2 * step], query + 4 * i, k[0], k[1]);
        decode::multiply(s[i % kChains][2 * step + 1], query + 4 * i, k[2], k[3]);
      }
    float shrink[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint64_t mine = seen[half] >> (key + lane % 4 * 2);
      float most = largest[half];
#pragma unroll
      for (int j = 0; j < 2 * kSteps; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[0][j][2 * half + e];
          if constexpr (kChains == 2) x += s[1][j][2 * half + e];
          x = (mine >> (8 * j + e) & 1) != 0 ? x : kNone;
          most = fmaxf(most, x);
        }
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 2));
      const float shift = most == kNone ? 0.0F : most * scale;  // infinities apart
      shrink[half] = exp2_fast(largest[half] * scale - shift);
      largest[half] = most;
      float weight = 0;
#pragma unroll
      for (int j = 0; j < 2 * kSteps; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[0][j][2 * half + e];
          x = exp2_fast(x * scale - shift);
          weight += x;
        }
      total[half] = total[half] * shrink[half] + weight;
    }
    if (__any_sync(0xFFFFFFFF, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
      for (auto& four : sum)
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] *= shrink[i / 2];
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const auto& low = s[0][2 * step];
      const auto& high = s[0][2 * step + 1];
      const std::uint32_t weights[4] = {pack_bf16(low[0], low[1]), pack_bf16(low[2], low[3]),
                                        pack_bf16(high[0], high[1]), pack_bf16(high[2], high[3])};
      const int row = key + 16 * step + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
      for (int i = 0; i < kHeadDim / 16; ++i) {
        const int chunk = 2 * i + lane / 16;
        std::uint32_t v[4];
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                     : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3])
                     : "r"(values + row * kRowBytes + (chunk ^ (row % 8)) * 16)
                     : "memory");
        decode::multiply(sum[2 * i], weights, v[0], v[1]);
        decode::multiply(sum[2 * i + 1], weights, v[2], v[3]);
      }
    }
  }

  /// The 64 keys of a stage, of which `seen` are seen by some row, at places from `first` on of the pages; of
  /// a list they are seen by all.
  __device__ __forceinline__ void add_unit(std::uint32_t keys, std::uint32_t values, std::uint64_t seen,
                                           bool paged, int first, float scale) {
    if (idle) return;
    std::uint64_t mine[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) mine[half] = paged ? seen & lowest(own[half] + 1 - first) : seen;
    if (tiles == 1)
      add<1>(keys, values, first_key, mine, scale);
    else if (tiles == 2)
      add<2>(keys, values, first_key, mine, scale);
    else
      add<4>(keys, values, first_key, mine, scale);
  }

  /// Leaves a part, or, where this block's keys were all of them and not divided, the answer.
  __device__ __forceinline__ void leave(const Arguments& all, const Pair& pair, float* part,
                                        bool answer) const {
    if (idle) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum_of_row = total[half];
      sum_of_row += __shfl_xor_sync(0xFFFFFFFF, sum_of_row, 1);
      sum_of_row += __shfl_xor_sync(0xFFFFFFFF, sum_of_row, 2);
      const int row = tile * 16 + lane / 4 + 8 * half;
      if (row >= pair.rows) continue;
      if (answer) {
        __nv_bfloat16* to = all.out + pair.place(all, row, all.out_stride, kHeadDim);
        const float factor = 1 / sum_of_row;
#pragma unroll
        for (int n = 0; n < kHeadDim / 8; ++n)
          *reinterpret_cast<std::uint32_t*>(to + n * 8 + lane % 4 * 2) =
              pack_bf16(sum[n][2 * half] * factor, sum[n][2 * half + 1] * factor);
        continue;
      }
      const int slot = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4 + 8 * half;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<float2*>(part + slot * kHeadDim + n * 8 + lane % 4 * 2) =
            make_float2(sum[n][2 * half], sum[n][2 * half + 1]);
      if (lane % 4 == 0) {
        part[kRows * kHeadDim + slot] = largest[half];
        part[kRows * kHeadDim + kRows + slot] = sum_of_row;
      }
    }
  }
};

}  // namespace vigil::kernels::cuda::listed
