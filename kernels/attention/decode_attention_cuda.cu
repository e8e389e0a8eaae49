#include "kernels/attention/decode_attention_cuda.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include <cuda_bf16.h>

#include "kernels/attention/hopper_cuda.h"
#include "kernels/attention/kv_map_cuda.h"

namespace vigil::kernels::cuda {

namespace {

constexpr int kWarps = 4;  // that compute, 16 keys of a page each; one more copies
constexpr int kComputing = kWarps * 32;
constexpr int kThreads = kComputing + 32;
constexpr int kWarpKeys = kPageTokens / kWarps;
constexpr int kStages = 5;
constexpr int kBarrier = 1;  // of the computing warps
constexpr int kMostBlocks = 132;  // a Hopper's multiprocessors; so many parts' weights fit where the warps leave theirs
constexpr float kNone = -std::numeric_limits<float>::infinity();

template <int kHeadDim>
struct Layout {
  static constexpr int kHalves = kHeadDim / kBoxColumns;
  static constexpr int kBoxBytes = kPageTokens * kBoxColumns * 2;
  static constexpr int kPageBytes = kHalves * kBoxBytes;  // keys, or values
  // What the warps found: sums, then largest scores and totals. Later the weights of the parts to combine.
  static constexpr int kFoundAt = kStages * 2 * kPageBytes;
  static constexpr int kFoundFloats = kWarps * kDecodeGroup * (kHeadDim + 2);
  static_assert(kFoundFloats >= 2 * kMostBlocks * kDecodeGroup);
  static constexpr int kSequencesAt = kFoundAt + kFoundFloats * 4;
  static constexpr int kBarriersAt = kSequencesAt + (3 * kDecodeSequences + 1 + 1) * 4;
  static constexpr int kBytes = kBarriersAt + 2 * kStages * 8 + 1024;  // 1,024: to align the start
};

struct Arguments {
  DecodeAttention call;
  std::int32_t page_rows;   // rows of the map from page to page
  std::int32_t value_rows;  // and from key to value
  float scale;              // of the scores, times log2(e)
  float* parts;             // [grid + sequences * kv_heads][floats_of_part()]
  std::int32_t* arrived;    // [sequences * kv_heads], zero between calls
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
    while (low < high) {  // the last sequence that starts at or before the unit; empty ones start with the next
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

/// Copies the block's pages. One warp.
template <int kHeadDim>
__device__ __forceinline__ void copy_pages(const CUtensorMap& map, const Arguments& arguments, const Work& work,
                                           int first, int end, std::uint32_t stages, std::uint32_t full,
                                           std::uint32_t empty) {
  using Shape = Layout<kHeadDim>;
  const int lane = threadIdx.x % 32;
  int stage = 0;
  std::uint32_t parity = 0;
  int known = 0;
  for (int unit = first; unit < end; ++unit) {
    const int lookup = (unit - first) % 32;
    if (lookup == 0 && unit + lane < end) {
      const Work::Place place = work.find(unit + lane);
      known = arguments.call.page_ids[work.first_page[place.sequence] + place.page] * arguments.page_rows +
              place.head * kPageTokens;
    }
    const int row = __shfl_sync(0xFFFFFFFF, known, lookup);
    barrier_wait(empty + 8 * stage, parity ^ 1);
    if (lane == 0) {
      const std::uint32_t to = stages + stage * 2 * Shape::kPageBytes;
      barrier_arrive_expect(full + 8 * stage, 2 * Shape::kPageBytes);
#pragma unroll
      for (int half = 0; half < Shape::kHalves; ++half)
        copy_box(to + half * Shape::kBoxBytes, map, half * kBoxColumns, row, full + 8 * stage);
#pragma unroll
      for (int half = 0; half < Shape::kHalves; ++half)
        copy_box(to + Shape::kPageBytes + half * Shape::kBoxBytes, map, half * kBoxColumns, row + arguments.value_rows,
                 full + 8 * stage);
    }
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
}

__device__ __forceinline__ void multiply(float (&d)[4], const std::uint32_t* a, std::uint32_t b0, std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// One warp's share of a (sequence, KV head): 16 keys of every page. Rows are the query heads of the KV head, at most
/// 16 (mma's m16n8k16; a thread has rows lane / 4 and lane / 4 + 8).
template <int kHeadDim>
struct Share {
  using Shape = Layout<kHeadDim>;
  std::uint32_t query[kHeadDim / 4];
  float sum[kHeadDim / 8][4];
  float largest[2];
  float total[2];  // of this thread's columns

  __device__ __forceinline__ void begin(const __nv_bfloat16* heads, int group) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kHeadDim / 4; ++i) {
      const int row = lane / 4 + i % 2 * 8;
      const int column = i / 4 * 16 + i / 2 % 2 * 8 + lane % 4 * 2;
      query[i] = row < group ? *reinterpret_cast<const std::uint32_t*>(heads + row * kHeadDim + column) : 0;
    }
#pragma unroll
    for (auto& four : sum)
#pragma unroll
      for (float& x : four) x = 0;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      largest[row] = kNone;
      total[row] = 0;
    }
  }

  /// `seen`: which of this warp's 16 keys count; `dead`: whose values may be NaN.
  __device__ __forceinline__ void add(std::uint32_t keys, std::uint32_t values, std::uint32_t seen, std::uint32_t dead,
                                      float scale) {
    const int lane = threadIdx.x % 32;
    const int warp_key = threadIdx.x / 32 % kWarps * kWarpKeys;
    if (dead != 0) {
      // Two lanes a row of 128 bytes in each half; lanes begin at different banks.
      if ((dead >> (lane / 2) & 1) != 0)
#pragma unroll
        for (int half = 0; half < Shape::kHalves; ++half)
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const std::uint32_t to =
                values + half * Shape::kBoxBytes + (warp_key + lane / 2) * 128 + (lane % 2 * 4 + (i + lane / 2) % 4) * 16;
            asm volatile("st.shared.v4.b32 [%0], {%1, %1, %1, %1};\n" ::"r"(to), "r"(0) : "memory");
          }
      fence_async();  // the copy engine writes here next
      __syncwarp();
    }

    float s[2][4] = {};
    const int key = warp_key + lane / 16 * 8 + lane % 8;
#pragma unroll
    for (int k = 0; k < kHeadDim / 16; ++k) {
      const int chunk = 2 * k + lane / 8 % 2;
      std::uint32_t b[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(keys + chunk / 8 * Shape::kBoxBytes + key * 128 + ((chunk % 8) ^ (key % 8)) * 16)
                   : "memory");
      multiply(s[0], query + 4 * k, b[0], b[1]);
      multiply(s[1], query + 4 * k, b[2], b[3]);
    }

    const std::uint32_t mine = seen >> (lane % 4 * 2);
    float shrink[2];
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float most = largest[row];
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[j][2 * row + e];
          x = (mine >> (8 * j + e) & 1) != 0 ? x : kNone;
          most = fmaxf(most, x);
        }
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xFFFFFFFF, most, 2));
      const float shift = most == kNone ? 0.0F : most * scale;
      shrink[row] = exp2_fast(largest[row] * scale - shift);
      largest[row] = most;
      float weight = 0;
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = s[j][2 * row + e];
          x = exp2_fast(x * scale - shift);
          weight += x;
        }
      total[row] = total[row] * shrink[row] + weight;
    }
    if (__any_sync(0xFFFFFFFF, shrink[0] != 1 || shrink[1] != 1)) {
#pragma unroll
      for (auto& four : sum)
#pragma unroll
        for (int i = 0; i < 4; ++i) four[i] *= shrink[i / 2];
    }

    const std::uint32_t weights[4] = {pack_bf16(s[0][0], s[0][1]), pack_bf16(s[0][2], s[0][3]),
                                      pack_bf16(s[1][0], s[1][1]), pack_bf16(s[1][2], s[1][3])};
    const int value = warp_key + lane / 8 % 2 * 8 + lane % 8;
#pragma unroll
    for (int n = 0; n < kHeadDim / 16; ++n) {
      const int chunk = 2 * n + lane / 16;
      std::uint32_t b[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3])
                   : "r"(values + chunk / 8 * Shape::kBoxBytes + value * 128 + ((chunk % 8) ^ (value % 8)) * 16)
                   : "memory");
      multiply(sum[2 * n], weights, b[0], b[1]);
      multiply(sum[2 * n + 1], weights, b[2], b[3]);
    }
  }

  /// Leaves the rows of heads that exist in shared memory: sums [warp][16][head_dim], largest and totals behind.
  __device__ __forceinline__ void leave(float* found, int group) const {
    const int lane = threadIdx.x % 32;
    const int warp = threadIdx.x / 32;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      float all = total[row];
      all += __shfl_xor_sync(0xFFFFFFFF, all, 1);
      all += __shfl_xor_sync(0xFFFFFFFF, all, 2);
      const int head = lane / 4 + 8 * row;
      if (head >= group) continue;
      float* at = found + (warp * kDecodeGroup + head) * kHeadDim;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n)
        *reinterpret_cast<float2*>(at + n * 8 + lane % 4 * 2) = make_float2(sum[n][2 * row], sum[n][2 * row + 1]);
      if (lane % 4 == 0) {
        float* ends = found + kWarps * kDecodeGroup * kHeadDim;
        ends[warp * kDecodeGroup + head] = largest[row];
        ends[(kWarps + warp) * kDecodeGroup + head] = all;
      }
    }
  }
};

/// What to multiply a part by whose largest score is `of` when the largest of all is `among`.
__device__ __forceinline__ float weight_of(float of, float among, float scale) {
  return of == kNone ? 0.0F : exp2_fast((of - among) * scale);
}

/// Combines what the warps left, and, if other blocks have parts of this (sequence, KV head), leaves it to the last of
/// them to combine all. The computing warps.
template <int kHeadDim>
__device__ __forceinline__ void finish(const Arguments& arguments, const Work& work, const Work::Place& place,
                                       float* found, std::int32_t* flag) {
  const DecodeAttention& call = arguments.call;
  const int thread = threadIdx.x;
  const int group = call.heads / call.kv_heads;
  const int pair = place.sequence * call.kv_heads + place.head;
  const int begin = work.start[place.sequence] + place.head * place.pages;
  const int first_block = work.block_of(begin);
  const int last_block = work.block_of(begin + place.pages - 1);
  const int part_floats = floats_of_part(group, kHeadDim);
  auto* out = static_cast<__nv_bfloat16*>(call.out) + place.sequence * call.out_stride +
              std::int64_t{place.head} * group * kHeadDim;
  float* part = arguments.parts + (static_cast<std::int64_t>(blockIdx.x) + pair) * part_floats;
  const float* ends = found + kWarps * kDecodeGroup * kHeadDim;
  const bool alone = first_block == last_block;

  named_sync(kBarrier, kComputing);
  for (int i = 4 * thread; i < group * kHeadDim; i += 4 * kComputing) {
    const int head = i / kHeadDim;
    float among = kNone;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) among = fmaxf(among, ends[warp * kDecodeGroup + head]);
    float total = 0;
    float4 sum{};
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) {
      const float weight = weight_of(ends[warp * kDecodeGroup + head], among, arguments.scale);
      total += weight * ends[(kWarps + warp) * kDecodeGroup + head];
      const float4 one = *reinterpret_cast<const float4*>(found + warp * kDecodeGroup * kHeadDim + i);
      sum.x += weight * one.x, sum.y += weight * one.y, sum.z += weight * one.z, sum.w += weight * one.w;
    }
    if (alone) {
      const float factor = total > 0 ? 1 / total : 0.0F;
      *reinterpret_cast<uint2*>(out + i) =
          make_uint2(pack_bf16(sum.x * factor, sum.y * factor), pack_bf16(sum.z * factor, sum.w * factor));
    } else {
      *reinterpret_cast<float4*>(part + i) = sum;
      if (i % kHeadDim == 0) {
        part[group * kHeadDim + head] = among;
        part[group * kHeadDim + group + head] = total;
      }
    }
  }
  if (alone) return named_sync(kBarrier, kComputing);  // what the warps left has been read

  const int count = last_block - first_block + 1;
  __threadfence();
  named_sync(kBarrier, kComputing);
  if (thread == 0) {
    const std::int32_t before = atomicAdd(arguments.arrived + pair, 1);
    if (before == count - 1) arguments.arrived[pair] = 0;  // for the next call
    *flag = static_cast<std::int32_t>(before == count - 1);
    __threadfence();
  }
  named_sync(kBarrier, kComputing);
  if (*flag == 0) return;

  // The weight of each part for each head, then all parts at once.
  const float* parts = arguments.parts + (std::int64_t{first_block} + pair) * part_floats;
  const std::int64_t stride = part_floats;
  float* weights = found;
  float* totals = found + count * group;
  for (int i = thread; i < count * group; i += kComputing) {
    const float* end = parts + i / group * stride + group * kHeadDim + i % group;
    weights[i] = __ldcg(end);
    totals[i] = __ldcg(end + group);
  }
  named_sync(kBarrier, kComputing);
  for (int i = 4 * thread; i < group * kHeadDim; i += 4 * kComputing) {
    const int head = i / kHeadDim;
    float among = kNone;
    for (int p = 0; p < count; ++p) among = fmaxf(among, weights[p * group + head]);
    float total = 0;
    float4 sum{};
#pragma unroll 8
    for (int p = 0; p < count; ++p) {
      const float4 one = __ldcg(reinterpret_cast<const float4*>(parts + p * stride + i));
      const float weight = weight_of(weights[p * group + head], among, arguments.scale);
      total += weight * totals[p * group + head];
      sum.x += weight * one.x, sum.y += weight * one.y, sum.z += weight * one.z, sum.w += weight * one.w;
    }
    const float factor = total > 0 ? 1 / total : 0.0F;
    *reinterpret_cast<uint2*>(out + i) =
        make_uint2(pack_bf16(sum.x * factor, sum.y * factor), pack_bf16(sum.z * factor, sum.w * factor));
  }
  named_sync(kBarrier, kComputing);
}

template <int kHeadDim>
__device__ __forceinline__ void attend(const Arguments& arguments, const Work& work, int first, int end,
                                       std::uint32_t stages, std::uint32_t full, std::uint32_t empty, float* found,
                                       std::int32_t* flag) {
  using Shape = Layout<kHeadDim>;
  const DecodeAttention& call = arguments.call;
  const int lane = threadIdx.x % 32;
  const int warp_key = threadIdx.x / 32 * kWarpKeys;
  const int group = call.heads / call.kv_heads;
  int stage = 0;
  std::uint32_t parity = 0;
  std::uint32_t known = 0;  // of this warp's keys: seen in the low half, dead in the high one
  Work::Place place = work.find(first);
  Share<kHeadDim> share;
  bool fresh = true;
  for (int unit = first; unit < end; ++unit) {
    const int lookup = (unit - first) % 32;
    if (lookup == 0 && unit + lane < end) {
      const Work::Place ahead = work.find(unit + lane);
      const std::uint64_t live = call.live[work.first_page[ahead.sequence] + ahead.page];
      const int last = work.position[ahead.sequence] - ahead.page * kPageTokens;
      const std::uint64_t seen = last >= 63 ? live : live & ((std::uint64_t{2} << last) - 1);
      known = static_cast<std::uint32_t>(seen >> warp_key & 0xFFFF) |
              static_cast<std::uint32_t>(~live >> warp_key & 0xFFFF) << 16;
    }
    const std::uint32_t keys = __shfl_sync(0xFFFFFFFF, known, lookup);
    if (fresh)
      share.begin(static_cast<const __nv_bfloat16*>(call.q) + place.sequence * call.q_stride +
                      std::int64_t{place.head} * group * kHeadDim,
                  group);
    fresh = false;
    barrier_wait(full + 8 * stage, parity);
    const std::uint32_t at = stages + stage * 2 * Shape::kPageBytes;
    share.add(at, at + Shape::kPageBytes, keys & 0xFFFF, keys >> 16, arguments.scale);
    __syncwarp();
    if (lane == 0) barrier_arrive(empty + 8 * stage);
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
    if (++place.page == place.pages || unit + 1 == end) {
      share.leave(found, group);
      --place.page;
      finish<kHeadDim>(arguments, work, place, found, flag);
      if (unit + 1 < end) place = work.find(unit + 1);
      fresh = true;
    }
  }
}

template <int kHeadDim>
__global__ void __launch_bounds__(kThreads, 1)
    decode_attention_kernel(const __grid_constant__ CUtensorMap map, const __grid_constant__ Arguments arguments) {
  using Shape = Layout<kHeadDim>;
  extern __shared__ std::uint8_t memory[];
  std::uint8_t* aligned = memory + (1024 - shared_address(memory) % 1024) % 1024;
  const std::uint32_t stages = shared_address(aligned);
  auto* sequences = reinterpret_cast<std::int32_t*>(aligned + Shape::kSequencesAt);
  auto* flag = sequences + 3 * kDecodeSequences + 1;
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
  const Work work = plan(arguments.call, sequences);
  const int block = static_cast<int>(blockIdx.x);
  if (block >= work.blocks) return;
  const int first = work.first_unit(block);
  const int end = work.first_unit(block + 1);
  if (__shfl_sync(0xFFFFFFFF, static_cast<int>(threadIdx.x) / 32, 0) == kWarps)
    copy_pages<kHeadDim>(map, arguments, work, first, end, stages, full, empty);
  else
    attend<kHeadDim>(arguments, work, first, end, stages, full, empty,
                     reinterpret_cast<float*>(aligned + Shape::kFoundAt), flag);
}

void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw std::runtime_error(std::string("decode attention: ") + what + ": " + cudaGetErrorString(error));
}

int grid() {
  int device = 0;
  int count = 0;
  check(cudaGetDevice(&device), "device");
  check(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device), "multiprocessors");
  return std::min(count, kMostBlocks);
}

/// Bytes of the counters before the parts.
std::size_t counter_bytes(int sequences, int kv_heads) {
  return (static_cast<std::size_t>(sequences) * static_cast<std::size_t>(kv_heads) * 4 + 255) / 256 * 256;
}

template <int kHeadDim>
void launch(cudaStream_t stream, const DecodeAttention& call) {
  constexpr float kLog2e = 1.44269504F;
  static_assert(Layout<kHeadDim>::kBytes <= 232448);
  const CUtensorMap map =
      kv_map({call.base, call.page_stride, call.value_offset, call.pool_pages, call.kv_heads, call.head_dim});
  auto* workspace = static_cast<std::uint8_t*>(call.workspace);
  const Arguments arguments{call,
                            static_cast<std::int32_t>(call.page_stride / kHeadDim),
                            static_cast<std::int32_t>(call.value_offset / kHeadDim),
                            call.scale * kLog2e,
                            reinterpret_cast<float*>(workspace + counter_bytes(call.sequences, call.kv_heads)),
                            reinterpret_cast<std::int32_t*>(workspace)};
  const auto kernel = decode_attention_kernel<kHeadDim>;
  constexpr int kBytes = Layout<kHeadDim>::kBytes;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes), "shared memory");
  kernel<<<static_cast<unsigned>(grid()), kThreads, kBytes, stream>>>(map, arguments);
  check(cudaGetLastError(), "launch");
}

}  // namespace

std::size_t decode_workspace_bytes(int sequences, int heads, int kv_heads, int head_dim) {
  const auto parts = static_cast<std::size_t>(grid()) + static_cast<std::size_t>(sequences) * static_cast<std::size_t>(kv_heads);
  return counter_bytes(sequences, kv_heads) + parts * static_cast<std::size_t>(floats_of_part(heads / kv_heads, head_dim)) * sizeof(float);
}

void decode_attention(cudaStream_t stream, const DecodeAttention& call) {
  const auto require = [](bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("decode attention: ") + what);
  };
  require(call.kv_heads > 0 && call.heads > 0 && call.heads % call.kv_heads == 0, "heads are no multiple of kv_heads");
  require(call.heads / call.kv_heads <= kDecodeGroup, "more than 16 heads to a KV head");
  require(call.head_dim == 64 || call.head_dim == 128, "head_dim is neither 64 nor 128");
  const auto aligned = [](const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; };
  require(aligned(call.q) && aligned(call.out) && call.q_stride % 8 == 0 && call.out_stride % 8 == 0,
          "rows are not aligned to 16 bytes");
  require(call.q_stride >= std::int64_t{call.heads} * call.head_dim &&
              call.out_stride >= std::int64_t{call.heads} * call.head_dim,
          "rows overlap");
  require(call.scale > 0, "the scale is not positive");
  require(call.sequences >= 0 && call.sequences <= kDecodeSequences, "more than 1,024 sequences");
  require(aligned(call.workspace), "the workspace is not aligned to 16 bytes");
  if (call.sequences == 0) return;
  if (call.head_dim == 64) return launch<64>(stream, call);
  launch<128>(stream, call);
}

}  // namespace vigil::kernels::cuda
