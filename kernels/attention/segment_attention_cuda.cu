#include <cmath>

#include "kernels/attention/segment_attention_cuda.h"
#include "kernels/device/cuda.cuh"

namespace vigil::kernels {
namespace {

using bfloat = __nv_bfloat16;

constexpr int kRows = kSegmentTileRows;  // queries of a block, 16 a warp
constexpr int kKeys = 64;                // keys of a step
constexpr int kThreads = kRows / 16 * 32;

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

/// 16 bytes from device to shared memory; zeros if not `valid`.
__device__ __forceinline__ void copy_async(std::uint32_t to, const void* from, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid ? 16 : 0));
}
__device__ __forceinline__ void commit() {
  asm volatile("cp.async.commit_group;");
}
template <int pending>
__device__ __forceinline__ void wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending));
}

__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], std::uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}
__device__ __forceinline__ void load_transposed(std::uint32_t (&to)[4], std::uint32_t from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(from));
}

/// c[16 x 8] += a[16 x 16] b[16 x 8]
__device__ __forceinline__ void multiply(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                         std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, "
      "%1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ std::uint32_t pair_of(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

/// Online softmax over tiles of 64 keys (FlashAttention-2's order of loops): one block a tile of queries and
/// a head, each warp 16 queries on its own, scores and sums in registers.
template <int kHead>
__global__ void __launch_bounds__(kThreads)
    attend(const bfloat* q, std::int64_t q_stride, const bfloat* k, std::int64_t k_stride, const bfloat* v,
           std::int64_t v_stride, const SegmentTile* tiles, float scale_log2, bfloat* out,
           std::int64_t out_stride) {
  constexpr int kStride = kHead + 8;  // 16 bytes more: rows of 8 then lie in different banks
  constexpr int kChunks = kHead / 8;
  extern __shared__ __align__(16) bfloat memory[];
  bfloat* const keys = memory;                          // two steps
  bfloat* const values = memory + 2 * kKeys * kStride;  // two steps; at first the queries lie here
  const SegmentTile tile = tiles[blockIdx.x];
  const std::int64_t column = std::int64_t{blockIdx.y} * kHead;
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int lane = static_cast<int>(threadIdx.x % 32);

  const auto fetch = [&](bfloat* to, const bfloat* from, std::int64_t stride, int first, int end) {
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * kChunks; i += kThreads) {
      const int row = i / kChunks;
      const int chunk = i % kChunks;
      const bool valid = first + row < end;
      copy_async(shared_address(to + row * kStride + chunk * 8),
                 from + (valid ? first + row : first) * stride + column + chunk * 8, valid);
    }
  };

  // Queries by way of shared memory into registers, where they stay.
  fetch(values, q, q_stride, tile.row, tile.end);
  commit();
  wait<0>();
  __syncthreads();
  std::uint32_t query[kHead / 16][4];
#pragma unroll
  for (int step = 0; step < kHead / 16; ++step)
    load_matrices(query[step],
                  shared_address(values + (warp * 16 + lane % 16) * kStride + step * 16 + lane / 16 * 8));
  __syncthreads();

  float sums[kHead / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0, 0};

  const int steps = (tile.end - tile.begin + kKeys - 1) / kKeys;
  fetch(keys, k, k_stride, tile.begin, tile.end);
  fetch(values, v, v_stride, tile.begin, tile.end);
  commit();
  for (int step = 0; step < steps; ++step) {
    const int first = tile.begin + step * kKeys;
    const bfloat* key = keys + step % 2 * kKeys * kStride;
    const bfloat* value = values + step % 2 * kKeys * kStride;
    if (step + 1 < steps) {
      const int next = (step + 1) % 2 * kKeys * kStride;
      fetch(keys + next, k, k_stride, first + kKeys, tile.end);
      fetch(values + next, v, v_stride, first + kKeys, tile.end);
      commit();
      wait<1>();
    } else {
      wait<0>();
    }
    __syncthreads();

    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int d = 0; d < kHead / 16; ++d)
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        // Two n-tiles at once: rows n * 16 + 0..15 of the keys, columns d * 16 + 0..15.
        std::uint32_t b[4];
        load_matrices(b, shared_address(key + (n * 16 + lane % 8 + lane / 16 * 8) * kStride + d * 16 +
                                        lane / 8 % 2 * 8));
        multiply(scores[2 * n], query[d], b[0], b[1]);
        multiply(scores[2 * n + 1], query[d], b[2], b[3]);
      }
    if (first + kKeys > tile.end) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          if (first + n * 8 + lane % 4 * 2 + i % 2 >= tile.end) scores[n][i] = -INFINITY;
    }

    // Row `half` of this thread is lane / 4 + 8 * half of the warp's 16; its columns are spread over 4 lanes.
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = largest[half];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
        most = fmaxf(most, fmaxf(scores[n][2 * half], scores[n][2 * half + 1]));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 2));
      const float kept = exp2f((largest[half] - most) * scale_log2);
      largest[half] = most;
      float sum = 0;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
        for (int i = 2 * half; i < 2 * half + 2; ++i) {
          scores[n][i] = exp2f((scores[n][i] - most) * scale_log2);
          sum += scores[n][i];
        }
      total[half] = total[half] * kept + sum;
#pragma unroll
      for (int d = 0; d < kHead / 8; ++d) {
        sums[d][2 * half] *= kept;
        sums[d][2 * half + 1] *= kept;
      }
    }

#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      const std::uint32_t weights[4] = {pair_of(scores[2 * n][0], scores[2 * n][1]),
                                        pair_of(scores[2 * n][2], scores[2 * n][3]),
                                        pair_of(scores[2 * n + 1][0], scores[2 * n + 1][1]),
                                        pair_of(scores[2 * n + 1][2], scores[2 * n + 1][3])};
#pragma unroll
      for (int d = 0; d < kHead / 16; ++d) {
        std::uint32_t b[4];
        load_transposed(b, shared_address(value + (n * 16 + lane % 16) * kStride + d * 16 + lane / 16 * 8));
        multiply(sums[2 * d], weights, b[0], b[1]);
        multiply(sums[2 * d + 1], weights, b[2], b[3]);
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    total[half] += __shfl_xor_sync(0xffffffffU, total[half], 1);
    total[half] += __shfl_xor_sync(0xffffffffU, total[half], 2);
    const int row = tile.row + warp * 16 + lane / 4 + 8 * half;
    if (row >= tile.end) continue;
    const float inverse = 1.0F / total[half];
    bfloat* to = out + row * out_stride + column + lane % 4 * 2;
#pragma unroll
    for (int d = 0; d < kHead / 8; ++d)
      *reinterpret_cast<std::uint32_t*>(to + d * 8) =
          pair_of(sums[d][2 * half] * inverse, sums[d][2 * half + 1] * inverse);
  }
}

template <int kHead>
void launch(cudaStream_t stream, const cuda::SegmentCall& call) {
  constexpr std::size_t kBytes = std::size_t{4} * kKeys * (kHead + 8) * sizeof(bfloat);
  check_cuda(cudaFuncSetAttribute(attend<kHead>, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "segment_attention");
  const dim3 grid(static_cast<unsigned>(call.tiles), static_cast<unsigned>(call.q.cols / kHead));
  constexpr float kLog2E = 1.4426950408889634F;
  attend<kHead><<<grid, kThreads, kBytes, stream>>>(
      call.q.row<bfloat>(0), call.q.stride, call.k.row<bfloat>(0), call.k.stride, call.v.row<bfloat>(0),
      call.v.stride, call.tile, call.scale * kLog2E, call.out.row<bfloat>(0), call.out.stride);
}

}  // namespace

bool cuda::fits_segment_tiles(const SegmentCall& call) {
  const auto aligned = [](ConstMatrix matrix) {
    return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % 8 == 0;
  };
  return call.q.dtype == DType::bf16 && call.scale > 0 && call.head_dim % 16 == 0 && call.head_dim >= 16 &&
         call.head_dim <= 128 && aligned(call.q) && aligned(call.k) && aligned(call.v) && aligned(call.out);
}

void cuda::attend_segment_tiles(cudaStream_t stream, const SegmentCall& call) {
  if (call.tiles == 0) return;
  switch (call.head_dim) {
    case 16:
      launch<16>(stream, call);
      break;
    case 32:
      launch<32>(stream, call);
      break;
    case 48:
      launch<48>(stream, call);
      break;
    case 64:
      launch<64>(stream, call);
      break;
    case 80:
      launch<80>(stream, call);
      break;
    case 96:
      launch<96>(stream, call);
      break;
    case 112:
      launch<112>(stream, call);
      break;
    default:
      launch<128>(stream, call);
      break;
  }
  check_launch("segment_attention");
}

}  // namespace vigil::kernels
