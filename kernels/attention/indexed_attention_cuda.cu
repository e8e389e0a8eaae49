#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include <cuda_bf16.h>

#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/indexed_attention_cuda.h"
#include "kernels/attention/indexed_attention_pages_cuda.h"
#include "kernels/attention/kv_map_cuda.h"
#include "kernels/attention/online_softmax_cuda.h"
#include "kernels/attention/wgmma_cuda.h"

namespace vigil::kernels::cuda {

namespace indexed {
namespace {

/// Where a row's answer goes.
template <int kHeadDim>
__device__ __forceinline__ __nv_bfloat16* output_at(const IndexedAttention& call, const QueryTile& tile,
                                                    int kv_head, int row) {
  const int heads = call.heads / call.kv_heads;
  return static_cast<__nv_bfloat16*>(call.out) + (tile.first_row + row / heads) * call.out_stride +
         std::int64_t{kv_head * heads + row % heads} * kHeadDim;
}

/// Scores, weights and sums of 64 rows over all steps, and their answers, or, where the tile is shared, the
/// block's part of them. One warpgroup.
template <int kHeadDim, bool kSplit>
__device__ __forceinline__ void attend(const Layout<kHeadDim>& at, const Arguments& arguments,
                                       const Work& work, int group) {
  using Shape = Layout<kHeadDim>;
  const IndexedAttention& call = arguments.call;
  const QueryTile& tile = work.tile;
  const int kv_head = work.kv_head;
  const int thread = threadIdx.x % 128;
  const int lane = thread % 32;
  const int heads = call.heads / call.kv_heads;
  const int rows = tile.rows * heads;
  const int steps = (tile.pages + 1) / 2;
  if (group * kGroupRows >= rows) return skip_steps(at, steps);

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
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};\n" ::"r"(chunk_at(i / kChunks, i % kChunks)),
                 "r"(chunk.x), "r"(chunk.y), "r"(chunk.z), "r"(chunk.w)
                 : "memory");
  }
  fence_async();
  named_sync(kOwnBarrier + group, 128);

  // Rows without a query follow the last one.
  const int my_row = group * kGroupRows + thread / 32 * 16 + lane / 4;
  const std::int32_t* positions = call.position + tile.first_row;
  const int position[2] = {positions[min(my_row, rows - 1) / heads] - work.shift,
                           positions[min(my_row + 8, rows - 1) / heads] - work.shift};
  const int first_position =
      positions[group * kGroupRows / heads] - work.shift;  // the least of the warpgroup
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
  const std::uint64_t query_matrix = wgmma_descriptor(query, 16);
  const auto score = [&](int stage) {
    const std::uint64_t keys = wgmma_descriptor(at.key(stage), 16);
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k)
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
  Ring key;
  Ring value;
  load_words(0, live);
  load_words(1, next_live);

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

  if (steps > 1) barrier_wait(at.key_full(key.stage), key.parity);
  for (int step = 1; step < steps; ++step) {
    live[0] = next_live[0];
    live[1] = next_live[1];
    load_words(step + 1, next_live);
    wgmma_hold(s);
    wgmma_hold(sum);
    wgmma_fence();
    score(key.stage);
    wgmma_commit();
    barrier_wait(at.value_clean(value.stage), value.parity);
    wgmma_fence();
    mix(wgmma_descriptor(at.value(value.stage), Shape::kHalfBytes), std::integral_constant<int, 0>{},
        std::integral_constant<int, 8>{});
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_hold(s);
    if (lane == 0) barrier_arrive(at.key_empty(key.stage));
    key.advance();
    hide_unseen(s, step, live);
    softmax.weigh(s, arguments.scale, shrink);
    wgmma_hold(s);
    // The next keys are awaited here, not where they are needed: this branch keeps the assembler from
    // computing the weights after the wait for the product that they should run beside.
    if (step + 1 < steps) barrier_wait(at.key_full(key.stage), key.parity);
    wgmma_wait<0>();
    wgmma_hold(sum);
    if (lane == 0) barrier_arrive(at.value_empty(value.stage));
    value.advance();
    pack();
#pragma unroll
    for (int i = 0; i < kHeadDim / 2; ++i) sum[i] *= shrink[i / 2 % 2];
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
  if constexpr (kSplit) {
    if (work.sharers > 1) {
      constexpr int kPart = part_floats(kHeadDim);
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
    *reinterpret_cast<uint4*>(output_at<kHeadDim>(call, tile, kv_head, row) + i % kChunks * 8) = chunk;
  }
}

template <int kHeadDim, bool kSplit>
__global__ void __launch_bounds__(kThreads, 1)
    indexed_attention_kernel(const __grid_constant__ CUtensorMap map,
                             const __grid_constant__ Arguments arguments) {
  extern __shared__ std::uint8_t memory[];
  const Layout<kHeadDim> at{(shared_address(memory) + 1023) / 1024 * 1024};
  const int pair = static_cast<int>(blockIdx.x) / (kSplit ? arguments.splits : 1);
  Work work{arguments.call.tiles[pair / arguments.call.kv_heads], pair % arguments.call.kv_heads, 1, 0};
  if constexpr (kSplit) {
    const int share = static_cast<int>(blockIdx.x) % arguments.splits;
    const int steps = (work.tile.pages + 1) / 2;
    work.sharers = sharers(work.tile.pages, arguments.splits);
    if (share >= work.sharers) return;
    const int first = steps * share / work.sharers;
    const int end = steps * (share + 1) / work.sharers;
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
      barrier_init(at.key_empty(stage), 8);    // one lane of each computing warp
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
    attend<kHeadDim, kSplit>(at, arguments, work, group - 1);
  }
}

/// Combines the parts of the blocks that shared a tile. One warp a row; grid: (tile and KV head, row / 4).
template <int kHeadDim>
__global__ void __launch_bounds__(128) combine_kernel(const __grid_constant__ Arguments arguments) {
  constexpr int kPart = part_floats(kHeadDim);
  constexpr int kColumns = kHeadDim / 32;  // of a lane
  constexpr int kAtOnce = 16;              // parts whose loads are in flight
  const IndexedAttention& call = arguments.call;
  const int pair = static_cast<int>(blockIdx.x);
  const QueryTile tile = call.tiles[pair / call.kv_heads];
  const int count = sharers(tile.pages, arguments.splits);
  const int row = static_cast<int>(blockIdx.y * 4 + threadIdx.x / 32);
  if (count == 1 || row >= tile.rows * (call.heads / call.kv_heads)) return;
  const int lane = threadIdx.x % 32;
  const float* parts = arguments.parts + std::int64_t{pair} * arguments.splits * kPart;

  // Lane p weighs part p.
  const float* ends = parts + lane * kPart + kRows * kHeadDim + row;
  const float largest = lane < count ? ends[0] : kNone;
  float total = lane < count ? ends[kRows] : 0.0F;
  float among = largest;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) among = fmaxf(among, __shfl_xor_sync(0xFFFFFFFF, among, step));
  const float weight = largest == kNone ? 0.0F : exp2_fast((largest - among) * arguments.scale);
  total *= weight;
#pragma unroll
  for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(0xFFFFFFFF, total, step);

  constexpr int kPairs = kColumns / 2;
  const auto* from = reinterpret_cast<const float2*>(parts + row * kHeadDim + lane * kColumns);
  float sum[kColumns] = {};
  for (int first = 0; first < count; first += kAtOnce) {
    float2 part[kAtOnce][kPairs];
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p)
#pragma unroll
      for (int i = 0; i < kPairs; ++i)
        part[p][i] = first + p < count ? from[(first + p) * (kPart / 2) + i] : float2{};
#pragma unroll
    for (int p = 0; p < kAtOnce; ++p) {
      const float of = __shfl_sync(0xFFFFFFFF, weight, (first + p) % 32);
#pragma unroll
      for (int i = 0; i < kPairs; ++i) {
        sum[2 * i] += of * part[p][i].x;
        sum[2 * i + 1] += of * part[p][i].y;
      }
    }
  }
  const float factor = total > 0 ? 1 / total : 0.0F;
  auto* to = reinterpret_cast<std::uint32_t*>(output_at<kHeadDim>(call, tile, pair % call.kv_heads, row) +
                                              lane * kColumns);
#pragma unroll
  for (int i = 0; i < kPairs; ++i) to[i] = pack_bf16(sum[2 * i] * factor, sum[2 * i + 1] * factor);
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

template <int kHeadDim, bool kSplit>
void launch(cudaStream_t stream, const IndexedAttention& call, int splits) {
  constexpr float kLog2e = 1.44269504F;
  const CUtensorMap map =
      kv_map({call.base, call.page_stride, call.value_offset, call.pool_pages, call.kv_heads, call.head_dim});
  const Arguments arguments{call,
                            static_cast<std::int32_t>(call.page_stride / kHeadDim),
                            static_cast<std::int32_t>(call.value_offset / kHeadDim),
                            call.scale * kLog2e,
                            splits,
                            static_cast<float*>(call.workspace)};
  const auto kernel = indexed_attention_kernel<kHeadDim, kSplit>;
  constexpr int kBytes = Layout<kHeadDim>::kBytes;
  const auto pairs = static_cast<unsigned>(call.tile_count * call.kv_heads);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "shared memory");
  kernel<<<pairs* static_cast<unsigned>(splits), kThreads, kBytes, stream>>>(map, arguments);
  check(cudaGetLastError(), "launch");
  if (!kSplit) return;
  combine_kernel<kHeadDim><<<dim3(pairs, kRows / 4), 128, 0, stream>>>(arguments);
  check(cudaGetLastError(), "launch");
}

}  // namespace
}  // namespace indexed

int tile_rows(int heads, int kv_heads) {
  return indexed::kRows / (heads / kv_heads);
}

std::size_t indexed_workspace_bytes(int head_dim) {
  return static_cast<std::size_t>(indexed::multiprocessors()) *
         static_cast<std::size_t>(indexed::part_floats(head_dim)) * sizeof(float);
}

void indexed_attention(cudaStream_t stream, const IndexedAttention& call) {
  const auto require = [](bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("indexed attention: ") + what);
  };
  require(call.kv_heads > 0 && call.heads > 0 && call.heads % call.kv_heads == 0 &&
              call.heads / call.kv_heads <= indexed::kRows,
          "heads are no multiple of kv_heads");
  require(call.head_dim == 64 || call.head_dim == 128, "head_dim is neither 64 nor 128");
  const auto aligned = [](const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
  };
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
  const int splits =
      call.workspace == nullptr ? 1 : std::min(indexed::kMostSplits, indexed::multiprocessors() / pairs);
  if (splits > 1) {
    if (call.head_dim == 64) return indexed::launch<64, true>(stream, call, splits);
    return indexed::launch<128, true>(stream, call, splits);
  }
  if (call.head_dim == 64) return indexed::launch<64, false>(stream, call, 1);
  indexed::launch<128, false>(stream, call, 1);
}

}  // namespace vigil::kernels::cuda
