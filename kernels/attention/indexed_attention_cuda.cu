#include "kernels/attention/indexed_attention_cuda.h"

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

/// Zeroes the values of dead keys, whose weight is zero but whose memory may hold NaN. One warp.
template <int kHeadDim, int kStages>
__device__ __forceinline__ void clean_values(const Layout<kHeadDim, kStages>& at, const Arguments& arguments,
                                             const QueryTile& tile) {
  using Shape = Layout<kHeadDim, kStages>;
  constexpr int kChunks = kHeadDim / 8;  // of 16 bytes in a row
  const int lane = threadIdx.x % 32;
  const std::uint64_t* words = arguments.call.live + tile.first_page;
  Ring<kStages> value;
  for (int first = 0; first < tile.pages; first += 2) {
    std::uint64_t dead[2] = {~words[first], first + 1 < tile.pages ? ~words[first + 1] : 0};
    barrier_wait(at.value_full(value.stage), value.parity);
    if ((dead[0] | dead[1]) != 0) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
        while (dead[i] != 0) {
          const int token = __ffsll(static_cast<long long>(dead[i])) - 1;
          dead[i] &= dead[i] - 1;
          if (lane < kChunks) {
            const std::uint32_t to = at.value(value.stage) + lane / 8 * Shape::kHalfBytes + i * Shape::kBoxBytes +
                                     token * 128 + lane % 8 * 16;
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

template <int kHeadDim, int kOptions>
__device__ __forceinline__ void attend(const Layout<kHeadDim, (kOptions & kStagesMask)>& at, const Arguments& arguments,
                                       const QueryTile& tile, int kv_head, int group) {
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
  const int position[2] = {positions[min(my_row, rows - 1) / heads], positions[min(my_row + 8, rows - 1) / heads]};
  const int first_position = positions[group * kGroupRows / heads];  // the least of the warpgroup
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

  // Through the queries' memory, so that whole rows leave.
  float factor[2];
#pragma unroll
  for (int row = 0; row < 2; ++row) {
    float total = softmax.total[row];
    total += __shfl_xor_sync(0xFFFFFFFF, total, 1);
    total += __shfl_xor_sync(0xFFFFFFFF, total, 2);
    factor[row] = total > 0 ? 1 / total : 0.0F;
  }
  const int own = thread / 32 * 16 + lane / 4;
#pragma unroll
  for (int j = 0; j < kChunks; ++j)
#pragma unroll
    for (int row = 0; row < 2; ++row)
      asm volatile("st.shared.b32 [%0], %1;\n" ::"r"(chunk_at(own + 8 * row, j) + lane % 4 * 4),
                   "r"(pack_bf16(sum[4 * j + 2 * row] * factor[row], sum[4 * j + 2 * row + 1] * factor[row]))
                   : "memory");
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
    const std::int64_t to = (tile.first_row + row / heads) * call.out_stride +
                            std::int64_t{kv_head * heads + row % heads} * kHeadDim + i % kChunks * 8;
    *reinterpret_cast<uint4*>(static_cast<__nv_bfloat16*>(call.out) + to) = chunk;
  }
}

template <int kHeadDim, int kOptions>
__global__ void __launch_bounds__(kThreads, 1)
    indexed_attention_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ Arguments arguments) {
  constexpr int kStages = (kOptions & kStagesMask);
  extern __shared__ std::uint8_t memory[];
  const Layout<kHeadDim, kStages> at{(shared_address(memory) + 1023) / 1024 * 1024};
  const QueryTile tile = arguments.call.tiles[blockIdx.x / arguments.call.kv_heads];
  const int kv_head = static_cast<int>(blockIdx.x) % arguments.call.kv_heads;
  if (threadIdx.x == 0) {
    prefetch_map(map);
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(at.key_full(stage), 1);
      barrier_init(at.value_full(stage), 1);
      barrier_init(at.value_clean(stage), 1);
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
    if (warp == 0) copy_pages(at, map, arguments, tile, kv_head);
    if (warp == 1) clean_values(at, arguments, tile);
  } else {
    take_registers<240>();
    attend<kHeadDim, kOptions>(at, arguments, tile, kv_head, group - 1);
  }
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("indexed attention: ") + what + ": " + cudaGetErrorString(error));
}

template <int kHeadDim, int kOptions>
void launch(cudaStream_t stream, const IndexedAttention& call) {
  constexpr float kLog2e = 1.44269504F;
  const CUtensorMap map =
      kv_map({call.base, call.page_stride, call.value_offset, call.pool_pages, call.kv_heads, call.head_dim});
  const Arguments arguments{call, static_cast<std::int32_t>(call.page_stride / kHeadDim),
                            static_cast<std::int32_t>(call.value_offset / kHeadDim), call.scale * kLog2e};
  const auto kernel = indexed_attention_kernel<kHeadDim, kOptions>;
  constexpr int kBytes = Layout<kHeadDim, (kOptions & kStagesMask)>::kBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "shared memory");
  kernel<<<static_cast<unsigned>(call.tile_count * call.kv_heads), kThreads, kBytes, stream>>>(map, arguments);
  check(cudaGetLastError(), "launch");
}

}  // namespace

int tile_rows(int heads, int kv_heads) { return kRows / (heads / kv_heads); }

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
  if (call.tile_count == 0) return;
  if (call.head_dim == 64) return launch<64, 2 | kTurns | kBeside>(stream, call);
  launch<128, 2 | kTurns | kBeside>(stream, call);
}

}  // namespace vigil::kernels::cuda
