#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <cuda_bf16.h>

#include "kernels/attention/decode_attention_combine_cuda.h"
#include "kernels/attention/decode_attention_cuda.h"
#include "kernels/attention/decode_attention_share_cuda.h"
#include "kernels/attention/decode_attention_work_cuda.h"
#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/kv_map_cuda.h"
#include "kernels/attention/online_softmax_cuda.h"
#include "kernels/device/overlap.cuh"

namespace vigil::kernels::cuda {

namespace decode {
namespace {

/// Copies the block's pages; those that the kernels before do not write, before these end. One warp.
template <int kHeadDim>
__device__ __forceinline__ void copy_pages(const CUtensorMap& map, const Arguments& arguments,
                                           const Work& work, int first, int end, std::uint32_t stages,
                                           std::uint32_t full, std::uint32_t empty) {
  using Shape = Layout<kHeadDim>;
  const int lane = threadIdx.x % 32;
  int stage = 0;
  std::uint32_t parity = 0;
  // Of 32 units from `unit` on, one a lane: the page's first row, and whether it is the sequence's newest.
  int known = 0;
  bool known_newest = false;
  bool awaited = false;
  for (int unit = first; unit < end; ++unit) {
    const int lookup = (unit - first) % 32;
    if (lookup == 0 && unit + lane < end) {
      const Work::Place place = work.find(unit + lane);
      known = arguments.call.page_ids[work.first_page[place.sequence] + place.page] * arguments.page_rows +
              place.head * kPageTokens;
      known_newest = place.page + 1 == place.pages;
    }
    const int row = __shfl_sync(0xFFFFFFFF, known, lookup);
    const bool newest = __shfl_sync(0xFFFFFFFF, static_cast<int>(known_newest), lookup) != 0;
    if (newest && !awaited) {
      await_previous();
      awaited = true;
    }
    barrier_wait(empty + 8 * stage, parity ^ 1);
    if (lane == 0) {
      const std::uint32_t to = stages + stage * 2 * Shape::kPageBytes;
      barrier_arrive_expect(full + 8 * stage, 2 * Shape::kPageBytes);
#pragma unroll
      for (int half = 0; half < Shape::kHalves; ++half)
        copy_box(to + half * Shape::kBoxBytes, map, half * kBoxColumns, row, full + 8 * stage);
#pragma unroll
      for (int half = 0; half < Shape::kHalves; ++half)
        copy_box(to + Shape::kPageBytes + half * Shape::kBoxBytes, map, half * kBoxColumns,
                 row + arguments.value_rows, full + 8 * stage);
    }
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
}

/// Combines what the warps left: the answer, or, if other blocks have pages of this (sequence, KV head), a
/// part of it. The computing warps.
template <int kHeadDim>
__device__ __forceinline__ void finish(const Arguments& arguments, const Work& work, const Work::Place& place,
                                       Found<kHeadDim>& found) {
  const DecodeAttention& call = arguments.call;
  const int thread = threadIdx.x;
  const int group = call.heads / call.kv_heads;
  const int pair = place.sequence * call.kv_heads + place.head;
  const int begin = work.start[place.sequence] + place.head * place.pages;
  const int first_block = work.block_of(begin);
  const int last_block = work.block_of(begin + place.pages - 1);
  const bool alone = first_block == last_block;
  const int block = static_cast<int>(blockIdx.x);
  float* part = arguments.parts + std::int64_t{block + pair} * floats_of_part(group, kHeadDim);
  auto* out = static_cast<__nv_bfloat16*>(call.out) + place.sequence * call.out_stride +
              std::int64_t{place.head} * group * kHeadDim;

  if (thread == 0 && block == first_block)
    arguments.parts_of[pair] = {first_block + pair, alone ? 0 : last_block - first_block + 1};
  named_sync(kBarrier, kComputing);
  for (int i = 4 * thread; i < group * kHeadDim; i += 4 * kComputing) {
    const int head = i / kHeadDim;
    Columns columns;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp)
      columns.add({*reinterpret_cast<const float4*>(&found.sum[warp][head][i % kHeadDim]),
                   found.largest[warp][head], found.total[warp][head]},
                  arguments.scale);
    if (alone) {
      columns.store(out + i);
    } else {
      *reinterpret_cast<float4*>(part + i) = columns.sum;
      if (i % kHeadDim == 0) {
        part[group * kHeadDim + head] = columns.largest;
        part[group * kHeadDim + group + head] = columns.total;
      }
    }
  }
  named_sync(kBarrier, kComputing);
}

template <int kHeadDim>
__device__ __forceinline__ void attend(const Arguments& arguments, const Work& work, int first, int end,
                                       std::uint32_t stages, std::uint32_t full, std::uint32_t empty,
                                       Found<kHeadDim>& found) {
  using Shape = Layout<kHeadDim>;
  const DecodeAttention& call = arguments.call;
  const int lane = threadIdx.x % 32;
  const int warp_key = threadIdx.x / 32 * kWarpKeys;
  const int group = call.heads / call.kv_heads;
  int stage = 0;
  std::uint32_t parity = 0;
  Work::Place place = work.find(first);
  // Of 32 units from `unit` on, one a lane: which of this warp's keys are seen, and in the high half, which
  // are dead.
  const auto look_up = [&](int unit) {
    if (unit + lane >= end) return 0U;
    const Work::Place ahead = work.find(unit + lane);
    const std::uint64_t live = call.live[work.first_page[ahead.sequence] + ahead.page];
    const int last = work.position[ahead.sequence] - ahead.page * kPageTokens;
    const std::uint64_t seen = last >= 63 ? live : live & ((std::uint64_t{2} << last) - 1);
    return static_cast<std::uint32_t>(seen >> warp_key & 0xFFFF) |
           static_cast<std::uint32_t>(~live >> warp_key & 0xFFFF) << 16;
  };
  const auto queries = [&] {
    return static_cast<const __nv_bfloat16*>(call.q) + place.sequence * call.q_stride +
           std::int64_t{place.head} * group * kHeadDim;
  };
  std::uint32_t known = look_up(first);
  await_previous();
  Share<kHeadDim> share;
  share.begin(queries(), group);
  for (int unit = first; unit < end; ++unit) {
    const int lookup = (unit - first) % 32;
    if (lookup == 0 && unit != first) known = look_up(unit);
    const std::uint32_t keys = __shfl_sync(0xFFFFFFFF, known, lookup);
    barrier_wait(full + 8 * stage, parity);
    const std::uint32_t at = stages + stage * 2 * Shape::kPageBytes;
    share.add(at, at + Shape::kPageBytes, keys & 0xFFFF, keys >> 16, arguments.scale);
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + 8 * stage);
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
    if (++place.page < place.pages && unit + 1 < end) continue;
    share.leave(found, group);
    --place.page;
    finish<kHeadDim>(arguments, work, place, found);
    if (unit + 1 == end) break;
    place = work.find(unit + 1);
    share.begin(queries(), group);
  }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads, 1)
    decode_attention_kernel(const __grid_constant__ CUtensorMap map,
                            const __grid_constant__ Arguments arguments) {
  using Shape = Layout<kHeadDim>;
  extern __shared__ std::uint8_t memory[];
  std::uint8_t* aligned = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const std::uint32_t stages = shared_address(aligned);
  auto* sequences = reinterpret_cast<std::int32_t*>(aligned + Shape::kSequencesAt);
  const std::uint32_t full = stages + Shape::kBarriersAt;
  const std::uint32_t empty = full + 8 * kStages;
  if (threadIdx.x == 0) {
    prefetch_map(map);
    for (int stage = 0; stage < kStages; ++stage) {
      barrier_init(full + 8 * stage, 1);
      barrier_init(empty + 8 * stage, kWarps);
    }
    barrier_init_fence();
  }
  let_next_begin();
  const Work work = plan(arguments.call, sequences);
  const int block = static_cast<int>(blockIdx.x);
  if (block >= work.blocks) return await_previous();
  const int first = work.first_unit(block);
  const int end = work.first_unit(block + 1);
  if (__shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0) == kWarps)
    copy_pages<kHeadDim>(map, arguments, work, first, end, stages, full, empty);
  else
    attend<kHeadDim>(arguments, work, first, end, stages, full, empty,
                     *reinterpret_cast<Found<kHeadDim>*>(aligned + Shape::kFoundAt));
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("decode attention: ") + what + ": " + cudaGetErrorString(error));
}

int multiprocessors() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
  return count;
}

/// Bytes of `parts_of`, before the parts.
std::size_t pairs_bytes(int sequences, int kv_heads) {
  return (static_cast<std::size_t>(sequences) * static_cast<std::size_t>(kv_heads) * sizeof(PartsOf) + 255) /
         256 * 256;
}

template <int kHeadDim>
void launch(cudaStream_t stream, const DecodeAttention& call) {
  constexpr float kLog2e = 1.44269504F;
  const CUtensorMap map =
      kv_map({call.base, call.page_stride, call.value_offset, call.pool_pages, call.kv_heads, call.head_dim});
  auto* workspace = static_cast<std::uint8_t*>(call.workspace);
  const Arguments arguments{call,
                            static_cast<std::int32_t>(call.page_stride / kHeadDim),
                            static_cast<std::int32_t>(call.value_offset / kHeadDim),
                            call.scale * kLog2e,
                            reinterpret_cast<float*>(workspace + pairs_bytes(call.sequences, call.kv_heads)),
                            reinterpret_cast<PartsOf*>(workspace)};
  launch_kernel(decode_attention_kernel<kHeadDim>,
                {static_cast<unsigned>(multiprocessors()), kThreads, Layout<kHeadDim>::kBytes},
                call.lists_in_place, stream, map, arguments);
  // Of few heads each has a block, whose threads share its many parts; many would come in several turns.
  constexpr int kMostBlocks = 512;
  const auto launch_combine = [&](auto combine, int heads) {
    launch_early(combine,
                 {dim3(static_cast<unsigned>(heads), static_cast<unsigned>(call.sequences)), kCombining},
                 stream, arguments);
  };
  if (call.heads * call.sequences > kMostBlocks)
    launch_combine(combine_parts<kHeadDim, true>, call.kv_heads);
  else
    launch_combine(combine_parts<kHeadDim, false>, call.heads);
}

}  // namespace
}  // namespace decode

std::size_t decode_workspace_bytes(int sequences, int heads, int kv_heads, int head_dim) {
  const auto parts = static_cast<std::size_t>(decode::multiprocessors()) +
                     static_cast<std::size_t>(sequences) * static_cast<std::size_t>(kv_heads);
  return decode::pairs_bytes(sequences, kv_heads) +
         parts * static_cast<std::size_t>(decode::floats_of_part(heads / kv_heads, head_dim)) * sizeof(float);
}

void decode_attention(cudaStream_t stream, const DecodeAttention& call) {
  const auto require = [](bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("decode attention: ") + what);
  };
  require(call.kv_heads > 0 && call.heads > 0 && call.heads % call.kv_heads == 0,
          "heads are no multiple of kv_heads");
  require(call.heads / call.kv_heads <= kDecodeGroup, "more than 16 heads to a KV head");
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
  require(call.sequences >= 0 && call.sequences <= kDecodeSequences, "more than 1,024 sequences");
  require(aligned(call.workspace), "the workspace is not aligned to 16 bytes");
  if (call.sequences == 0) return;
  if (call.head_dim == 64) return decode::launch<64>(stream, call);
  decode::launch<128>(stream, call);
}

}  // namespace vigil::kernels::cuda
