// Indexed attention's blocks: what they share, where it lies in shared memory, and the warps that bring the
// pages.
#pragma once

#include <cstdint>

#include <cuda.h>

#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/indexed_attention_cuda.h"
#include "kernels/attention/kv_map_cuda.h"

namespace vigil::kernels::cuda::indexed {

inline constexpr int kGroupRows = 64;          // rows of a warpgroup
inline constexpr int kRows = 2 * kGroupRows;   // (query, head) rows of a block
inline constexpr int kKeys = 2 * kPageTokens;  // keys of a step
inline constexpr int kThreads = 3 * 128;       // loaders, two warpgroups that compute
inline constexpr int kLeastSteps = 4;          // of a block that shares a tile with others
inline constexpr int kMostSplits = 32;

inline constexpr int kStages = 2;
inline constexpr int kOwnBarrier = 1;  // and 2: named barriers of the warpgroups that compute

template <int kHeadDim>
struct Layout {
  static constexpr int kHalves = kHeadDim / kBoxColumns;
  static constexpr int kBoxBytes = kPageTokens * kBoxColumns * 2;
  static constexpr int kHalfBytes = 2 * kBoxBytes;          // 64 columns of a step's keys
  static constexpr int kStepBytes = kHalves * kHalfBytes;   // keys, or values, of a step
  static constexpr int kQueryBytes = kRows * kHeadDim * 2;  // [warpgroup][half][64 rows][128 bytes]
  static constexpr int kKeyAt = kQueryBytes;
  static constexpr int kValueAt = kKeyAt + kStages * kStepBytes;
  static constexpr int kBarriersAt = kValueAt + kStages * kStepBytes;
  static constexpr int kBytes = kBarriersAt + 5 * kStages * 8 + 1024;  // 1,024: to align the start

  std::uint32_t start;
  __device__ std::uint32_t key(int stage) const { return start + kKeyAt + stage * kStepBytes; }
  __device__ std::uint32_t value(int stage) const { return start + kValueAt + stage * kStepBytes; }
  // Key and value have arrived; the values of dead keys are zero; key and value may be overwritten.
  __device__ std::uint32_t key_full(int stage) const { return start + kBarriersAt + stage * 8; }
  __device__ std::uint32_t value_full(int stage) const { return key_full(kStages + stage); }
  __device__ std::uint32_t value_clean(int stage) const { return key_full(2 * kStages + stage); }
  __device__ std::uint32_t key_empty(int stage) const { return key_full(3 * kStages + stage); }
  __device__ std::uint32_t value_empty(int stage) const { return key_full(4 * kStages + stage); }
};

/// A place in a ring of stages.
struct Ring {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

struct Arguments {
  IndexedAttention call;
  std::int32_t page_rows;   // rows of the map from page to page
  std::int32_t value_rows;  // and from key to value
  float scale;              // of the scores, times log2(e)
  int splits;               // blocks that share a tile and KV head, at most
  float* parts;             // of each block: [128][head_dim], then the largest scores and totals of its rows
};

/// Floats of a block's part: sums of its rows, then their largest scores, then their totals.
__host__ __device__ constexpr int part_floats(int head_dim) {
  return kRows * (head_dim + 2);
}

/// Blocks that share a tile of so many pages, of `splits`.
__device__ __forceinline__ int sharers(int pages, int splits) {
  return min(splits, max(1, (pages + 1) / 2 / kLeastSteps));
}

/// A block's work: one KV head of a tile, or a share of its keys.
struct Work {
  QueryTile tile;
  int kv_head;
  int sharers;
  int shift;  // positions before the share
};

/// The keys of a page (its first one at position `first`) that a query at `position` sees.
__device__ __forceinline__ std::uint64_t visible(std::uint64_t live, int first, int position) {
  const int last = position - first;
  if (last < 0) return 0;
  return last >= 63 ? live : live & ((std::uint64_t{2} << last) - 1);
}

/// Copies keys and values of all steps, keys one step ahead. One warp.
template <int kHeadDim>
__device__ __forceinline__ void copy_pages(const Layout<kHeadDim>& at, const CUtensorMap& map,
                                           const Arguments& arguments, const QueryTile& tile, int kv_head) {
  using Shape = Layout<kHeadDim>;
  const int lane = threadIdx.x % 32;
  const std::int32_t* ids = arguments.call.page_ids + tile.first_page;
  const int steps = (tile.pages + 1) / 2;
  const auto copy = [&](std::uint32_t to, int row, int half_page, std::uint32_t barrier) {
#pragma unroll
    for (int half = 0; half < Shape::kHalves; ++half)
      copy_box(to + half * Shape::kHalfBytes + half_page * Shape::kBoxBytes, map, half * kBoxColumns, row,
               barrier);
  };
  Ring key;
  Ring value;
  std::int32_t known = 0;
  int row[2];         // of this step's pages
  int row_before[2];  // of the last step's
  for (int step = 0; step <= steps; ++step) {
    if (step < steps) {
      if (step % 16 == 0) known = 2 * step + lane < tile.pages ? ids[2 * step + lane] : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        row[i] =
            __shfl_sync(0xFFFFFFFF, known, 2 * step % 32 + i) * arguments.page_rows + kv_head * kPageTokens;
      barrier_wait(at.key_empty(key.stage), key.parity ^ 1);
      if (lane == 0) {
        const int pages = min(2, tile.pages - 2 * step);
        const std::uint32_t full = at.key_full(key.stage);
        barrier_arrive_expect(full, pages * Shape::kHalves * Shape::kBoxBytes);
        for (int i = 0; i < pages; ++i) copy(at.key(key.stage), row[i], i, full);
      }
      key.advance();
    }
    if (step > 0) {
      barrier_wait(at.value_empty(value.stage), value.parity ^ 1);
      if (lane == 0) {
        const int pages = min(2, tile.pages - 2 * (step - 1));
        const std::uint32_t full = at.value_full(value.stage);
        barrier_arrive_expect(full, pages * Shape::kHalves * Shape::kBoxBytes);
        for (int i = 0; i < pages; ++i)
          copy(at.value(value.stage), row_before[i] + arguments.value_rows, i, full);
      }
      value.advance();
    }
    row_before[0] = row[0];
    row_before[1] = row[1];
  }
}

/// Zeroes the values of dead keys, whose weight is zero but whose memory may hold NaN. One warp for the first
/// pages of the steps, one for the second.
template <int kHeadDim>
__device__ __forceinline__ void clean_values(const Layout<kHeadDim>& at, const Arguments& arguments,
                                             const QueryTile& tile, int second) {
  using Shape = Layout<kHeadDim>;
  const int lane = threadIdx.x % 32;
  const std::uint64_t* words = arguments.call.live + tile.first_page;
  const auto load_word = [&](int page) { return page < tile.pages ? words[page] : ~std::uint64_t{0}; };
  std::uint64_t next_live = load_word(second);
  Ring value;
  for (int page = second; page - second < tile.pages; page += 2) {
    const std::uint64_t live = next_live;
    next_live = load_word(page + 2);
    barrier_wait(at.value_full(value.stage), value.parity);
    if (live != ~std::uint64_t{0}) {
      // A lane has two rows of 128 bytes in each half; lanes begin at different banks.
#pragma unroll
      for (int token = lane; token < kPageTokens; token += 32) {
        if ((live >> token & 1) != 0) continue;
        const std::uint32_t row = at.value(value.stage) + second * Shape::kBoxBytes + token * 128;
#pragma unroll
        for (int half = 0; half < Shape::kHalves; ++half)
#pragma unroll
          for (int i = 0; i < 8; ++i) {
            const std::uint32_t to = row + half * Shape::kHalfBytes + (i + lane) % 8 * 16;
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n" ::"r"(to), "r"(0) : "memory");
          }
      }
      fence_async();
      __syncwarp();
    }
    if (lane == 0) barrier_arrive(at.value_clean(value.stage));
    value.advance();
  }
}

/// Gives back all steps of a warpgroup without rows.
template <int kHeadDim>
__device__ __forceinline__ void skip_steps(const Layout<kHeadDim>& at, int steps) {
  Ring ring;
  for (int step = 0; step < steps; ++step) {
    barrier_wait(at.key_full(ring.stage), ring.parity);
    if (threadIdx.x % 32 == 0) barrier_arrive(at.key_empty(ring.stage));
    barrier_wait(at.value_clean(ring.stage), ring.parity);
    if (threadIdx.x % 32 == 0) barrier_arrive(at.value_empty(ring.stage));
    ring.advance();
  }
}

}  // namespace vigil::kernels::cuda::indexed
