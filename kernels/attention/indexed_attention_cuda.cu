#include "kernels/attention/indexed_attention_cuda.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <cuda_bf16.h>

#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/kv_map_cuda.h"
#include "kernels/attention/wgmma_cuda.h"

namespace vigil::kernels::cuda {

namespace {

constexpr int kGroupRows = 64;                  // rows of a warpgroup
constexpr int kRows = 2 * kGroupRows;           // (query, head) rows of a block
constexpr int kKeys = 2 * kPageTokens;          // keys of a step
constexpr int kThreads = 3 * 128;               // loaders, two warpgroups that compute
constexpr int kLeastSteps = 4;                  // of a block that shares a tile with others
constexpr int kMostSplits = 16;
constexpr float kNone = -std::numeric_limits<float>::infinity();

// Named barriers: 1 and 2 give the warpgroups turns on the matrix units, 3 and 4 are each one's own.
constexpr int kTurnBarrier = 1;
constexpr int kOwnBarrier = 3;

// Options: the number of stages, and flags.
constexpr int kStagesMask = 3;
constexpr int kTurns = 4;
constexpr int kBeside = 8;
constexpr int kLazy = 16;
constexpr int kQueryRegisters = 32;
constexpr int kSplit = 64;  // blocks share a tile's keys

template <int kHeadDim, int kStages>
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
template <int kStages>
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
  std::int32_t* arrived;    // [tiles * kv_heads][warpgroup], zero between calls
};

/// A block's work: one KV head of a tile, or a share of its keys.
struct Work {
  QueryTile tile;
  int kv_head;
  int pair;      // of tile and KV head
  int splits;    // blocks that have a share
  int split;     // this one's place among them
  int shift;     // positions before the share
};

/// The keys of a page (its first one at position `first`) that a query at `position` sees.
__device__ __forceinline__ std::uint64_t visible(std::uint64_t live, int first, int position) {
  const int last = position - first;
  if (last < 0) return 0;
  return last >= 63 ? live : live & ((std::uint64_t{2} << last) - 1);
}

/// Copies keys and values of all steps, keys one step ahead. One warp.
template <int kHeadDim, int kStages>
__device__ __forceinline__ void copy_pages(const Layout<kHeadDim, kStages>& at, const CUtensorMap& map,
                                           const Arguments& arguments, const QueryTile& tile, int kv_head) {
  using Shape = Layout<kHeadDim, kStages>;
  const int lane = threadIdx.x % 32;
  const std::int32_t* ids = arguments.call.page_ids + tile.first_page;
  const int steps = (tile.pages + 1) / 2;
  const auto copy = [&](std::uint32_t to, int row, int half_page, std::uint32_t barrier) {
#pragma unroll
    for (int half = 0; half < Shape::kHalves; ++half)
      copy_box(to + half * Shape::kHalfBytes + half_page * Shape::kBoxBytes, map, half * kBoxColumns, row, barrier);
  };
  Ring<kStages> key;
  Ring<kStages> value;
  std::int32_t known = 0;
  int row[2];        // of this step's pages
  int row_before[2];  // of the last step's
  for (int step = 0; step <= steps; ++step) {
    if (step < steps) {
      if (step % 16 == 0) known = 2 * step + lane < tile.pages ? ids[2 * step + lane] : 0;
#pragma unroll
      for (int i = 0; i < 2; ++i)
        row[i] = __shfl_sync(0xFFFFFFFF, known, 2 * step % 32 + i) * arguments.page_rows + kv_head * kPageTokens;
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

/// Zeroes the values of dead keys, whose weight is zero but whose memory may hold NaN. One warp for the first pages of
/// the steps, one for the second.
template <int kHeadDim, int kStages>
__device__ __forceinline__ void clean_values(const Layout<kHeadDim, kStages>& at, const Arguments& arguments,
                                             const QueryTile& tile, int second) {
  using Shape = Layout<kHeadDim, kStages>;
  const int lane = threadIdx.x % 32;
  const std::uint64_t* words = arguments.call.live + tile.first_page;
  const auto load_word = [&](int page) { return page < tile.pages ? words[page] : ~std::uint64_t{0}; };
  std::uint64_t next_live = load_word(second);
  Ring<kStages> value;
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
template <int kHeadDim, int kStages>
__device__ __forceinline__ void skip_steps(const Layout<kHeadDim, kStages>& at, int steps) {
  Ring<kStages> ring;
  for (int step = 0; step < steps; ++step) {
    barrier_wait(at.key_full(ring.stage), ring.parity);
    if (threadIdx.x % 32 == 0) barrier_arrive(at.key_empty(ring.stage));
    barrier_wait(at.value_clean(ring.stage), ring.parity);
    if (threadIdx.x % 32 == 0) barrier_arrive(at.value_empty(ring.stage));
    ring.advance();
  }
}

/// The running maximum and sum of a thread's two rows.
struct Softmax {
  float largest[2] = {kNone, kNone};
  float total[2] = {0, 0};  // of this thread's columns

  /// Turns scores into weights 2^(scale (s - largest)); `shrink` is what older weights are to be multiplied by.
  __device__ __forceinline__ void weigh(float (&s)[64], float scale, float (&shrink)[2]) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = largest[row];
#pragma unroll
      for (int j = 0; j < 16; ++j) most = fmaxf(most, fmaxf(s[4 * j + 2 * row], s[4 * j + 2 * row + 1]));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 2));
      const float shift = most == kNone ? 0.0F : most * scale;  // no key yet: keep infinities apart
      shrink[row] = exp2_fast(largest[row] * scale - shift);
      largest[row] = most;
      float sum = 0;
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[4 * j + 2 * row + e];
          x = exp2_fast(x * scale - shift);
          sum += x;
        }
      total[row] = total[row] * shrink[row] + sum;
    }
  }
};

/// Hides what a thread's two rows do not see: `seen[page][row]`, shifted so that bit 8 j + e is column 8 j + e.
__device__ __forceinline__ void hide(float (&s)[64], const std::uint64_t (&seen)[2][2]) {
#pragma unroll
  for (int page = 0; page < 2; ++page)
#pragma unroll
    for (int row = 0; row < 2; ++row)
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const auto bits = static_cast<std::uint32_t>(seen[page][row] >> (j / 4 * 32));
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[32 * page + 4 * j + 2 * row + e];
          x = (bits & (1U << (j % 4 * 8 + e))) != 0 ? x : kNone;
        }
      }
}

/// Where a row's answer goes.
template <int kHeadDim>
__device__ __forceinline__ __nv_bfloat16* output_at(const IndexedAttention& call, const Work& work, int row) {
  const int heads = call.heads / call.kv_heads;
  return static_cast<__nv_bfloat16*>(call.out) + (work.tile.first_row + row / heads) * call.out_stride +
         std::int64_t{work.kv_head * heads + row % heads} * kHeadDim;
}

/// The last warpgroup to have left its part of these rows puts all of them together. `flag`: 4 bytes of shared memory
/// of this warpgroup.
template <int kHeadDim>
__device__ __forceinline__ void combine(const Arguments& arguments, const Work& work, int group, int rows,
                                        std::uint32_t flag) {
  constexpr int kPart = kRows * (kHeadDim + 2);
  const int thread = threadIdx.x % 128;
  __threadfence();
  named_sync(kOwnBarrier + group, 128);
  if (thread == 0) {
    std::int32_t* arrived = arguments.arrived + 2 * work.pair + group;
    const bool last = atomicAdd(arrived, 1) == work.splits - 1;
    if (last) *arrived = 0;  // for the next call
    asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(flag), "r"(static_cast<int>(last)) : "memory");
    __threadfence();
  }
  named_sync(kOwnBarrier + group, 128);
  int last = 0;
  asm volatile("ld.shared.b32 %0, [%1];\n" : "=r"(last) : "r"(flag) : "memory");
  if (last == 0) return;

  const float* parts = arguments.parts + static_cast<std::int64_t>(work.pair) * arguments.splits * kPart;
  constexpr int kFours = kHeadDim / 4;  // threads of a row
  const int column = thread % kFours * 4;
  for (int row = group * kGroupRows + thread / kFours; row < min(rows, (group + 1) * kGroupRows);
       row += 128 / kFours) {
    const float* ends = parts + kRows * kHeadDim + row;
    float among = kNone;
#pragma unroll 4
    for (int p = 0; p < work.splits; ++p) among = fmaxf(among, __ldcg(ends + p * kPart));
    const float shift = among == kNone ? 0.0F : among * arguments.scale;
    float total = 0;
    float4 sum{};
#pragma unroll 4
    for (int p = 0; p < work.splits; ++p) {
      const float weight = exp2_fast(__ldcg(ends + p * kPart) * arguments.scale - shift);
      const float4 one = __ldcg(reinterpret_cast<const float4*>(parts + p * kPart + row * kHeadDim + column));
      total += weight * __ldcg(ends + p * kPart + kRows);
      sum.x += weight * one.x, sum.y += weight * one.y, sum.z += weight * one.z, sum.w += weight * one.w;
    }
    const float factor = total > 0 ? 1 / total : 0.0F;
    *reinterpret_cast<uint2*>(output_at<kHeadDim>(arguments.call, work, row) + column) =
        make_uint2(pack_bf16(sum.x * factor, sum.y * factor), pack_bf16(sum.z * factor, sum.w * factor));
  }
}

template <int kHeadDim, int kOptions>
__device__ __forceinline__ void attend(const Layout<kHeadDim, (kOptions & kStagesMask)>& at, const Arguments& arguments,
                                       const Work& work, int group) {
  const QueryTile& tile = work.tile;
  const int kv_head = work.kv_head;
  constexpr int kStages = (kOptions & kStagesMask);
  using Shape = Layout<kHeadDim, kStages>;
  const IndexedAttention& call = arguments.call;
  const int thread = threadIdx.x % 128;
  const int lane = thread % 32;
  const int heads = call.heads / call.kv_heads;
  const int rows = tile.rows * heads;
  const int steps = (tile.pages + 1) / 2;
  if (group * kGroupRows >= rows) return skip_steps(at, steps);
  const bool turns = ((kOptions & kTurns) != 0) && rows > kGroupRows;

  // Queries to shared memory, in the swizzle of the 128-byte pattern.
  const std::uint32_t query = at.start + group * (Shape::kQueryBytes / 2);
  const auto chunk_at = [&](int row, int chunk) {
    return query + chunk / 8 * (kGroupRows * 128) + row * 128 + ((chunk % 8) ^ (row % 8)) * 16;
  };
  constexpr int kChunks = kHeadDim / 8;
  for (int i = thread; i < kGroupRows * kChunks; i += 128) {
    const int row = group * kGroupRows + i / kChunks;
    uint4 chunk{};
    if (row < rows) {
      const std::int64_t from = (tile.first_row + row / heads) * call.q_stride +
                                std::int64_t{kv_head * heads + row % heads} * kHeadDim + i % kChunks * 8;
      chunk = *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(call.q) + from);
    }
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(chunk_at(i / kChunks, i % kChunks)), "r"(chunk.x),
                 "r"(chunk.y), "r"(chunk.z), "r"(chunk.w)
                 : "memory");
  }
  fence_async();
  named_sync(kOwnBarrier + group, 128);

  // Rows without a query follow the last one.
  const int my_row = group * kGroupRows + thread / 32 * 16 + lane / 4;
  const std::int32_t* positions = call.position + tile.first_row;
  const int position[2] = {positions[min(my_row, rows - 1) / heads] - work.shift,
                           positions[min(my_row + 8, rows - 1) / heads] - work.shift};
  const int first_position = positions[group * kGroupRows / heads] - work.shift;  // the least of the warpgroup
  const std::uint64_t* words = call.live + tile.first_page;
  const auto load_words = [&](int step, std::uint64_t(&to)[2]) {
    to[0] = 2 * step < tile.pages ? words[2 * step] : 0;
    to[1] = 2 * step + 1 < tile.pages ? words[2 * step + 1] : 0;
  };
  const auto hide_unseen = [&](float(&s)[64], int step, const std::uint64_t(&live)[2]) {
    if ((live[0] & live[1]) == ~std::uint64_t{0} && (step + 1) * kKeys - 1 <= first_position) return;
    std::uint64_t seen[2][2];
#pragma unroll
    for (int page = 0; page < 2; ++page)
#pragma unroll
      for (int row = 0; row < 2; ++row)
        seen[page][row] =
            visible(live[page], step * kKeys + page * kPageTokens, position[row]) >> (lane % 4 * 2);
    hide(s, seen);
  };

  float s[64];
  float sum[kHeadDim / 2];
  std::uint32_t weights[32];
#pragma unroll
  for (float& x : sum) x = 0;
  std::uint32_t query_registers[((kOptions & kQueryRegisters) != 0) ? kHeadDim / 4 : 1];
  if constexpr (((kOptions & kQueryRegisters) != 0)) {
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k)
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(query_registers[4 * k]), "=r"(query_registers[4 * k + 1]), "=r"(query_registers[4 * k + 2]),
                     "=r"(query_registers[4 * k + 3])
                   : "r"(chunk_at(thread / 32 * 16 + lane % 16, 2 * k + lane / 16))
                   : "memory");
  }
  const std::uint64_t query_matrix = wgmma_descriptor(query, 16);
  const auto score = [&](int stage) {
    const std::uint64_t keys = wgmma_descriptor(at.key(stage), 16);
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k)
      if constexpr (((kOptions & kQueryRegisters) != 0))
        wgmma_product(s, query_registers + 4 * k, keys + (k / 4 * Shape::kHalfBytes + k % 4 * 32) / 16, k != 0);
      else
        wgmma_product(s, query_matrix + (k / 4 * kGroupRows * 128 + k % 4 * 32) / 16,
                    keys + (k / 4 * Shape::kHalfBytes + k % 4 * 32) / 16, k != 0);
  };
  const auto mix = [&](std::uint64_t values, auto first, auto last) {  // steps of 16 keys
#pragma unroll
    for (int k = decltype(first)::value; k < decltype(last)::value; ++k)
      wgmma_mix(sum, weights + 4 * k, values + k * (2048 / 16));
  };
  const auto pack = [&] {
#pragma unroll
    for (int i = 0; i < 32; ++i) weights[i] = pack_bf16(s[2 * i], s[2 * i + 1]);
  };

  Softmax softmax;
  float shrink[2];
  std::uint64_t live[2];
  std::uint64_t next_live[2];
  Ring<kStages> key;
  Ring<kStages> value;
  load_words(0, live);
  load_words(1, next_live);
  if (turns && group == 1 && steps > 1) named_arrive(kTurnBarrier, 256);

  barrier_wait(at.key_full(0), 0);
  wgmma_hold(s);
  wgmma_fence();
  score(0);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_hold(s);
  if (lane == 0) barrier_arrive(at.key_empty(0));
  key.advance();
  hide_unseen(s, 0, live);
  softmax.weigh(s, arguments.scale, shrink);
  pack();

  if (((kOptions & kBeside) != 0) && steps > 1) barrier_wait(at.key_full(key.stage), key.parity);
  for (int step = 1; step < steps; ++step) {
    live[0] = next_live[0];
    live[1] = next_live[1];
    load_words(step + 1, next_live);
    if (!((kOptions & kBeside) != 0)) barrier_wait(at.key_full(key.stage), key.parity);
    if (turns) named_sync(kTurnBarrier + group, 256);
    wgmma_hold(s);
    wgmma_hold(sum);
    wgmma_fence();
    score(key.stage);
    wgmma_commit();
    barrier_wait(at.value_clean(value.stage), value.parity);
    mix(wgmma_descriptor(at.value(value.stage), Shape::kHalfBytes), std::integral_constant<int, 0>{},
        std::integral_constant<int, 8>{});
    wgmma_commit();
    if (turns && !(group == 1 && step + 1 == steps)) named_arrive(kTurnBarrier + 1 - group, 256);
    wgmma_wait<1>();
    wgmma_hold(s);
    if (lane == 0) barrier_arrive(at.key_empty(key.stage));
    key.advance();
    hide_unseen(s, step, live);
    softmax.weigh(s, arguments.scale, shrink);
    wgmma_hold(s);
    // The next keys are awaited here, not where they are needed: this branch keeps the assembler from computing the
    // weights after the wait for the product that they should run beside.
    if (((kOptions & kBeside) != 0) && step + 1 < steps) barrier_wait(at.key_full(key.stage), key.parity);
    wgmma_wait<0>();
    wgmma_hold(sum);
    if (lane == 0) barrier_arrive(at.value_empty(value.stage));
    value.advance();
    pack();
    if (!((kOptions & kLazy) != 0) || __any_sync(0xFFFFFFFF, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
      for (int i = 0; i < kHeadDim / 2; ++i) sum[i] *= shrink[i / 2 % 2];
    }
  }

  // The values of the last step; its second page may be none.
  barrier_wait(at.value_clean(value.stage), value.parity);
  {
    const std::uint64_t values = wgmma_descriptor(at.value(value.stage), Shape::kHalfBytes);
    wgmma_hold(sum);
    wgmma_fence();
    mix(values, std::integral_constant<int, 0>{}, std::integral_constant<int, 4>{});
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_hold(sum);
    if (tile.pages % 2 == 0) {
      wgmma_fence();
      mix(values, std::integral_constant<int, 4>{}, std::integral_constant<int, 8>{});
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_hold(sum);
    }
  }

  float total[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    total[row] = softmax.total[row];
    total[row] += __shfl_xor_sync(0xFFFFFFFF, total[row], 1);
    total[row] += __shfl_xor_sync(0xFFFFFFFF, total[row], 2);
  }
  const int own = thread / 32 * 16 + lane / 4;
  if constexpr ((kOptions & kSplit) != 0) {
    if (work.splits > 1) {
      constexpr int kPart = kRows * (kHeadDim + 2);
      float* part = arguments.parts + static_cast<std::int64_t>(blockIdx.x) * kPart;
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        const int of = group * kGroupRows + own + 8 * row;
#pragma unroll
        for (int j = 0; j < kChunks; ++j)
          *reinterpret_cast<float2*>(part + of * kHeadDim + 8 * j + lane % 4 * 2) =
              make_float2(sum[4 * j + 2 * row], sum[4 * j + 2 * row + 1]);
        if (lane % 4 == 0) {
          part[kRows * kHeadDim + of] = softmax.largest[row];
          part[kRows * kHeadDim + kRows + of] = total[row];
        }
      }
      combine<kHeadDim>(arguments, work, group, rows, query);
      return;
    }
  }

  // Through the queries' memory, so that whole rows leave.
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    const float factor = total[row] > 0 ? 1 / total[row] : 0.0F;
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
      asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(chunk_at(own + 8 * row, j) + lane % 4 * 4),
                   "r"(pack_bf16(sum[4 * j + 2 * row] * factor, sum[4 * j + 2 * row + 1] * factor))
                   : "memory");
  }
  __syncwarp();
  for (int i = lane; i < 16 * kChunks; i += 32) {
    const int in_group = thread / 32 * 16 + i / kChunks;
    const int row = group * kGroupRows + in_group;
    if (row >= rows) break;
    uint4 chunk;
    asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(chunk.x), "=r"(chunk.y), "=r"(chunk.z), "=r"(chunk.w)
                 : "r"(chunk_at(in_group, i % kChunks))
                 : "memory");
    *reinterpret_cast<uint4*>(output_at<kHeadDim>(call, work, row) + i % kChunks * 8) = chunk;
  }
}

template <int kHeadDim, int kOptions>
__global__ void __launch_bounds__(kThreads, 1)
    indexed_attention_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ Arguments arguments) {
  constexpr int kStages = (kOptions & kStagesMask);
  extern __shared__ std::uint8_t memory[];
  const Layout<kHeadDim, kStages> at{(shared_address(memory) + 1023) / 1024 * 1024};
  Work work{};
  work.pair = static_cast<int>(blockIdx.x);
  if constexpr ((kOptions & kSplit) != 0) {
    work.split = work.pair % arguments.splits;
    work.pair /= arguments.splits;
  }
  work.tile = arguments.call.tiles[work.pair / arguments.call.kv_heads];
  work.kv_head = work.pair % arguments.call.kv_heads;
  if constexpr ((kOptions & kSplit) != 0) {
    const int steps = (work.tile.pages + 1) / 2;
    work.splits = min(arguments.splits, max(1, steps / kLeastSteps));
    if (work.split >= work.splits) return;
    const int first = steps * work.split / work.splits;
    const int end = steps * (work.split + 1) / work.splits;
    work.shift = first * kKeys;
    work.tile.first_page += 2 * first;
    work.tile.pages = min(work.tile.pages - 2 * first, 2 * (end - first));
  }
  if (threadIdx.x == 0) {
    prefetch_map(map);
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(at.key_full(stage), 1);
      barrier_init(at.value_full(stage), 1);
      barrier_init(at.value_clean(stage), 2);  // the warps that clean
      barrier_init(at.key_empty(stage), 8);  // one lane of each computing warp
      barrier_init(at.value_empty(stage), 8);
    }
    barrier_init_fence();
  }
  __syncthreads();

  // Every thread of a warp takes the same way; the shuffle lets the compiler know.
  const int group = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 128, 0);
  if (group == 0) {
    give_registers<24>();
    const int warp = __shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0);
    if (warp == 0) copy_pages(at, map, arguments, work.tile, work.kv_head);
    if (warp == 1 || warp == 2) clean_values(at, arguments, work.tile, warp - 1);
  } else {
    take_registers<240>();
    attend<kHeadDim, kOptions>(at, arguments, work, group - 1);
  }
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("indexed attention: ") + what + ": " + cudaGetErrorString(error));
}

int multiprocessors() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
  return count;
}

/// Bytes of the counters before the parts.
std::size_t counter_bytes(int blocks) { return (static_cast<std::size_t>(blocks) * 2 * 4 + 255) / 256 * 256; }

template <int kHeadDim, int kOptions>
void launch(cudaStream_t stream, const IndexedAttention& call, int splits = 1) {
  constexpr float kLog2e = 1.44269504F;
  const CUtensorMap map =
      kv_map({call.base, call.page_stride, call.value_offset, call.pool_pages, call.kv_heads, call.head_dim});
  auto* workspace = static_cast<std::uint8_t*>(call.workspace);
  const Arguments arguments{call, static_cast<std::int32_t>(call.page_stride / kHeadDim),
                            static_cast<std::int32_t>(call.value_offset / kHeadDim), call.scale * kLog2e,
                            splits, reinterpret_cast<float*>(workspace + counter_bytes(multiprocessors())),
                            reinterpret_cast<std::int32_t*>(workspace)};
  const auto kernel = indexed_attention_kernel<kHeadDim, kOptions>;
  constexpr int kBytes = Layout<kHeadDim, (kOptions & kStagesMask)>::kBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "shared memory");
  kernel<<<static_cast<unsigned>(call.tile_count * call.kv_heads * splits), kThreads, kBytes, stream>>>(map, arguments);
  check(cudaGetLastError(), "launch");
}

}  // namespace

int tile_rows(int heads, int kv_heads) { return kRows / (heads / kv_heads); }

std::size_t indexed_workspace_bytes(int head_dim) {
  const int blocks = multiprocessors();
  return counter_bytes(blocks) +
         static_cast<std::size_t>(blocks) * kRows * static_cast<std::size_t>(head_dim + 2) * sizeof(float);
}

void indexed_attention(cudaStream_t stream, const IndexedAttention& call) {
  const auto require = [](bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("indexed attention: ") + what);
  };
  require(call.kv_heads > 0 && call.heads > 0 && call.heads % call.kv_heads == 0 &&
              call.heads / call.kv_heads <= kRows,
          "heads are no multiple of kv_heads");
  require(call.head_dim == 64 || call.head_dim == 128, "head_dim is neither 64 nor 128");
  const auto aligned = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  require(aligned(call.q) && aligned(call.out) && call.q_stride % 8 == 0 && call.out_stride % 8 == 0,
          "rows are not aligned to 16 bytes");
  require(call.q_stride >= std::int64_t{call.heads} * call.head_dim &&
              call.out_stride >= std::int64_t{call.heads} * call.head_dim,
          "rows overlap");
  require(call.scale > 0, "the scale is not positive");
  require(call.tile_count >= 0 && call.tile_count <= std::numeric_limits<std::int32_t>::max() / call.kv_heads,
          "too many tiles");
  require(aligned(call.workspace), "the workspace is not aligned to 16 bytes");
  if (call.tile_count == 0) return;
  // Too few tiles for all multiprocessors share each among several.
  const int pairs = call.tile_count * call.kv_heads;
  const int splits = call.workspace == nullptr ? 1 : std::min(kMostSplits, multiprocessors() / pairs);
  constexpr int kWhole = 2 | kTurns | kBeside;
  if (splits > 1) {
    if (call.head_dim == 64) return launch<64, kWhole | kSplit>(stream, call, splits);
    return launch<128, kWhole | kSplit>(stream, call, splits);
  }
  if (call.head_dim == 64) return launch<64, kWhole>(stream, call);
  launch<128, kWhole>(stream, call);
}

}  // namespace vigil::kernels::cuda
