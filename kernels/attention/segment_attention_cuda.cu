#include <cmath>

#include "kernels/attention/segment_attention_cuda.h"
#include "kernels/device/cuda.cuh"

namespace vigil::kernels {
namespace {

using bfloat = __nv_bfloat16;

constexpr int kRows = kSegmentTileRows;  // queries of a block
constexpr int kKeys = 64;                // keys of a step
constexpr int kTile = 16;                // queries of a product of the matrix units

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

/// 16 bytes more: rows of 8 then lie in different banks.
template <int kHead>
constexpr int kStride = kHead + 8;

/// cos and sin of what a thread turns of a tile: pairs of packs of 8, half a head apart.
template <int kHead, int kThreads>
class Angles {
 public:
  /// Of the rows from `first` on, those from `end` on not being there.
  __device__ __forceinline__ Angles(const float* cos, const float* sin, int first, int end) {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int row = first + (static_cast<int>(threadIdx.x) + n * kThreads) / kPacks;
      if (row >= end) break;
      const std::int64_t at = std::int64_t{row} * kHalf + pack(n) * 8;
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        cos_[n][j] = *reinterpret_cast<const Four*>(cos + at + 4 * j);
        sin_[n][j] = *reinterpret_cast<const Four*>(sin + at + 4 * j);
      }
    }
  }

  /// Turns the first `rows` of a tile in shared memory as `rope` does, rounded like there.
  __device__ __forceinline__ void turn(bfloat* tile, int rows) const {
#pragma unroll
    for (int n = 0; n < kEach; ++n) {
      const int row = (static_cast<int>(threadIdx.x) + n * kThreads) / kPacks;
      if (row >= min(rows, kRows)) break;
      auto* low = reinterpret_cast<Eight*>(tile + row * kStride<kHead> + pack(n) * 8);
      auto* high = low + kPacks;
      Eight a = *low;
      Eight b = *high;
#pragma unroll
      for (int j = 0; j < 8; ++j) {
        const float c = cos_[n][j / 4].values[j % 4];
        const float s = sin_[n][j / 4].values[j % 4];
        const float left = cuda::number(a.values[j]);
        const float right = cuda::number(b.values[j]);
        a.values[j] = cuda::rounded<bfloat>(left * c - right * s);
        b.values[j] = cuda::rounded<bfloat>(right * c + left * s);
      }
      *low = a;
      *high = b;
    }
  }

 private:
  using Four = cuda::Pack<float, 4>;
  using Eight = cuda::Pack<bfloat, 8>;
  static constexpr int kHalf = kHead / 2;
  static constexpr int kPacks = kHalf / 8;
  static constexpr int kEach = (kRows * kPacks + kThreads - 1) / kThreads;
  __device__ static int pack(int n) {
    return (static_cast<int>(threadIdx.x) + n * kThreads) % kPacks;
  }

  Four cos_[kEach][2], sin_[kEach][2];
};

/// A step of the online softmax of 16 queries: scores become weights, and what was summed up moves to the new
/// maximum. Row `half` of this thread is lane / 4 + 8 * half of the 16; its columns are spread over 4 lanes.
template <int kHead>
__device__ __forceinline__ void weigh(float (&scores)[kKeys / 8][4], float scale_log2, float (&largest)[2],
                                      float (&total)[2], float (&sums)[kHead / 8][4]) {
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
}

/// Online softmax over tiles of 64 keys (FlashAttention-2's order of loops): one block a tile of queries and
/// a head, each warp `kTiles` times 16 queries on its own, scores and sums in registers. `kRotates`: a tile
/// is a segment, whose queries and keys are turned on their way. `pictures`: as of a SegmentCall.
template <int kHead, int kTiles, bool kRotates>
__global__ void __launch_bounds__(kRows / (kTiles * kTile) * 32)
    attend(const bfloat* q, std::int64_t q_stride, const bfloat* k, std::int64_t k_stride, const bfloat* v,
           std::int64_t v_stride, const float* cos, const float* sin, const SegmentTile* tiles,
           const PictureKeys* pictures, std::int64_t layer, float scale_log2, bfloat* out,
           std::int64_t out_stride) {
  constexpr int kThreads = kRows / (kTiles * kTile) * 32;
  constexpr int kStride = vigil::kernels::kStride<kHead>;
  constexpr int kChunks = kHead / 8;
  extern __shared__ __align__(16) bfloat memory[];
  bfloat* const keys = memory;  // two steps; in the place of the second lie the queries at first
  bfloat* const values = memory + 2 * kKeys * kStride;  // two steps
  const SegmentTile tile = tiles[blockIdx.x];
  const std::int64_t column = std::int64_t{blockIdx.y} * kHead;
  if (!kRotates && pictures != nullptr) {
    const PictureKeys picture = pictures[tile.picture];
    k_stride = v_stride = std::int64_t{gridDim.y} * kHead;
    k = static_cast<const bfloat*>(picture.base) + layer * picture.layer_stride;
    v = k + picture.rows * k_stride;
  }
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

  bfloat* const queries = keys + kKeys * kStride;
  fetch(queries, q, q_stride, tile.row, tile.row_end);
  fetch(keys, k, k_stride, tile.begin, tile.end);
  fetch(values, v, v_stride, tile.begin, tile.end);
  commit();
  if constexpr (kRotates) {
    const Angles<kHead, kThreads> angles(cos, sin, tile.begin, tile.end);
    wait<0>();
    __syncthreads();
    angles.turn(queries, tile.end - tile.begin);
    angles.turn(keys, tile.end - tile.begin);
  } else {
    wait<0>();
  }
  __syncthreads();
  // Queries stay in registers.
  std::uint32_t query[kTiles][kHead / 16][4];
#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int d = 0; d < kHead / 16; ++d)
      load_matrices(query[m][d],
                    shared_address(queries + ((warp * kTiles + m) * kTile + lane % 16) * kStride + d * 16 +
                                   lane / 16 * 8));
  __syncthreads();

  float sums[kTiles][kHead / 8][4] = {};
  float largest[kTiles][2];
  float total[kTiles][2] = {};
#pragma unroll
  for (int m = 0; m < kTiles; ++m) largest[m][0] = largest[m][1] = -INFINITY;

  const int steps = kRotates ? 1 : (tile.end - tile.begin + kKeys - 1) / kKeys;
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

    float scores[kTiles][kKeys / 8][4] = {};
#pragma unroll
    for (int d = 0; d < kHead / 16; ++d)
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        // Two n-tiles at once: rows n * 16 + 0..15 of the keys, columns d * 16 + 0..15.
        std::uint32_t b[4];
        load_matrices(b, shared_address(key + (n * 16 + lane % 8 + lane / 16 * 8) * kStride + d * 16 +
                                        lane / 8 % 2 * 8));
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiply(scores[m][2 * n], query[m][d], b[0], b[1]);
          multiply(scores[m][2 * n + 1], query[m][d], b[2], b[3]);
        }
      }
    if (first + kKeys > tile.end) {
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int n = 0; n < kKeys / 8; ++n)
#pragma unroll
          for (int i = 0; i < 4; ++i)
            if (first + n * 8 + lane % 4 * 2 + i % 2 >= tile.end) scores[m][n][i] = -INFINITY;
    }

#pragma unroll
    for (int m = 0; m < kTiles; ++m) weigh<kHead>(scores[m], scale_log2, largest[m], total[m], sums[m]);

#pragma unroll
    for (int n = 0; n < kKeys / 16; ++n) {
      std::uint32_t weights[kTiles][4];
#pragma unroll
      for (int m = 0; m < kTiles; ++m)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          weights[m][i] =
              pair_of(scores[m][2 * n + i / 2][i % 2 * 2], scores[m][2 * n + i / 2][i % 2 * 2 + 1]);
#pragma unroll
      for (int d = 0; d < kHead / 16; ++d) {
        std::uint32_t b[4];
        load_transposed(b, shared_address(value + (n * 16 + lane % 16) * kStride + d * 16 + lane / 16 * 8));
#pragma unroll
        for (int m = 0; m < kTiles; ++m) {
          multiply(sums[m][2 * d], weights[m], b[0], b[1]);
          multiply(sums[m][2 * d + 1], weights[m], b[2], b[3]);
        }
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int m = 0; m < kTiles; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float& all = total[m][half];
      all += __shfl_xor_sync(0xffffffffU, all, 1);
      all += __shfl_xor_sync(0xffffffffU, all, 2);
      const int row = tile.row + (warp * kTiles + m) * kTile + lane / 4 + 8 * half;
      if (row >= tile.row_end) continue;
      const float inverse = 1.0F / all;
      bfloat* to = out + row * out_stride + column + lane % 4 * 2;
#pragma unroll
      for (int d = 0; d < kHead / 8; ++d)
        *reinterpret_cast<std::uint32_t*>(to + d * 8) =
            pair_of(sums[m][d][2 * half] * inverse, sums[m][d][2 * half + 1] * inverse);
    }
}

template <int kHead, int kTiles, bool kRotates>
void launch(cudaStream_t stream, const cuda::SegmentCall& call) {
  // One step needs no second tile of values.
  constexpr std::size_t kBytes = std::size_t{kRotates ? 3 : 4} * kKeys * kStride<kHead> * sizeof(bfloat);
  const auto kernel = attend<kHead, kTiles, kRotates>;
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes),
             "segment_attention");
  const dim3 grid(static_cast<unsigned>(call.tiles), static_cast<unsigned>(call.q.cols / kHead));
  constexpr float kLog2E = 1.4426950408889634F;
  kernel<<<grid, kRows / (kTiles * kTile) * 32, kBytes, stream>>>(
      call.q.row<bfloat>(0), call.q.stride, call.k.row<bfloat>(0), call.k.stride, call.v.row<bfloat>(0),
      call.v.stride, call.cos, call.sin, call.tile, call.pictures, call.layer, call.scale * kLog2E,
      call.out.row<bfloat>(0), call.out.stride);
}

template <int kHead>
void launch(cudaStream_t stream, const cuda::SegmentCall& call) {
  // Tiles of queries that share what a warp reads of keys and values, if there are registers for them.
  constexpr int kTiles = kHead <= 80 ? 2 : 1;
  if (call.cos != nullptr) {
    launch<kHead, 1, true>(stream, call);
  } else {
    launch<kHead, kTiles, false>(stream, call);
  }
}

}  // namespace

bool cuda::fits_segment_tiles(const SegmentCall& call) {
  const auto aligned = [](ConstMatrix matrix) {
    return reinterpret_cast<std::uintptr_t>(matrix.data) % 16 == 0 && matrix.stride % 8 == 0;
  };
  return call.q.dtype == DType::bf16 && call.scale > 0 && call.head_dim % 16 == 0 && call.head_dim >= 16 &&
         call.head_dim <= 128 && cuda::packs(call.cos, 0, 0, sizeof(float), 4) &&
         cuda::packs(call.sin, 0, 0, sizeof(float), 4) && aligned(call.q) && aligned(call.k) &&
         aligned(call.v) && aligned(call.out);
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
