#include "kernels/device/cuda.cuh"
#include "kernels/linear/few_rows_e4m3_cuda.h"
#include "kernels/quantize/quantize.h"

namespace vigil::kernels {
namespace {

/// Rows of weights of a group of warps, and rows of x of a tile: the shape of a product of the matrix units.
constexpr int kWeights = 16;
constexpr int kTile = 8;
/// Elements that a warp takes of each row at once: 128 bytes, 16 a load, 4 loads side by side.
constexpr int kLoads = 2;

/// 16 bytes that nobody reads again.
__device__ __forceinline__ uint4 stream_in(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

/// sums += a bᵀ over 32 columns; a: words of rows g and g + 8 of the weights, g being a quarter of the lane;
/// b of row g of x. Hopper makes f16 of the elements, in which they are exact, and adds up in f32.
__device__ __forceinline__ void multiply_32(float (&sums)[4], std::uint32_t a0, std::uint32_t a1,
                                            std::uint32_t a2, std::uint32_t a3, std::uint32_t b0,
                                            std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, "
      "%1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

/// `kWarps` warps, of which `kShare` neighbours take the same kWeights rows of w, each a part of their
/// length. A thread's 16 bytes are two products' words: the sum does not ask for the order of columns, as
/// long as x and w have the same. x is small and stays in the first-level cache.
template <int kTiles, int kShare, int kWarps, int kSteps, typename Out>
__global__ void __launch_bounds__(kWarps * 32)
    multiply(const std::uint8_t* x, std::int64_t x_stride, const float* x_scales, int rows,
             const std::uint8_t* w, std::int64_t w_stride, const float* w_scales, const float* bias, Out* out,
             std::int64_t out_stride, std::int64_t cols, int packs, bool accumulate) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const int share = warp % kShare;
  const int row_of = lane / 4;
  const int quarter = lane % 4;
  const std::int64_t first = (std::int64_t{blockIdx.x} * (kWarps / kShare) + warp / kShare) * kWeights;
  const auto* upper = reinterpret_cast<const uint4*>(w + min(first + row_of, cols - 1) * w_stride);
  const auto* lower = reinterpret_cast<const uint4*>(w + min(first + row_of + 8, cols - 1) * w_stride);
  const uint4* left[kTiles];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile)
    left[tile] = reinterpret_cast<const uint4*>(x + min(tile * kTile + row_of, rows - 1) * x_stride);

  float sums[kTiles][4] = {};
#pragma unroll kSteps
  for (int base = share * 4 * kLoads; base < packs; base += 4 * kLoads * kShare) {
    uint4 a[kLoads], b[kLoads];
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int at = base + 4 * load + quarter;
      a[load] = at < packs ? stream_in(upper + at) : uint4{};
      b[load] = at < packs ? stream_in(lower + at) : uint4{};
    }
#pragma unroll
    for (int load = 0; load < kLoads; ++load) {
      const int at = min(base + 4 * load + quarter, packs - 1);
#pragma unroll
      for (int tile = 0; tile < kTiles; ++tile) {
        const uint4 c = __ldg(left[tile] + at);
        multiply_32(sums[tile], a[load].x, b[load].x, a[load].y, b[load].y, c.x, c.y);
        multiply_32(sums[tile], a[load].z, b[load].z, a[load].w, b[load].w, c.z, c.w);
      }
    }
  }

  __shared__ float shares[kWarps][kTiles * kTile][kWeights + 1];
#pragma unroll
  for (int tile = 0; tile < kTiles; ++tile) {
    float(*to)[kWeights + 1] = shares[warp] + tile * kTile + 2 * quarter;
    to[0][row_of] = sums[tile][0];
    to[1][row_of] = sums[tile][1];
    to[0][row_of + 8] = sums[tile][2];
    to[1][row_of + 8] = sums[tile][3];
  }
  __syncthreads();
  for (int at = share * 32 + lane; at < rows * kWeights; at += 32 * kShare) {
    const int row = at / kWeights;
    const std::int64_t col = first + at % kWeights;
    if (col >= cols) continue;
    float sum = 0;
#pragma unroll
    for (int other = 0; other < kShare; ++other) sum += shares[warp - share + other][row][at % kWeights];
    sum = sum * x_scales[row] * w_scales[col];
    if (bias != nullptr) sum += bias[col];
    Out* to = out + row * out_stride + col;
    *to = cuda::rounded<Out>(accumulate ? cuda::number(*to) + sum : sum);
  }
}

}  // namespace

void cuda::few_rows_e4m3(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                         bool accumulate) {
  with_type(out.dtype, [&](auto type) {
    using Out = decltype(type);
    const auto launch = [&]<int tiles, int share, int warps, int steps>() {
      multiply<tiles, share, warps, steps, Out>
          <<<blocks_for(w.rows, warps / share * kWeights), warps * 32, 0, stream>>>(
              x.row<std::uint8_t>(0), x.stride, x.scales, static_cast<int>(x.rows), w.row<std::uint8_t>(0),
              w.stride, w.scales, bias, out.row<Out>(0), out.stride, w.rows,
              static_cast<int>(e4m3_stride(x.cols) / 16), accumulate);
    };
    // Up to so many rows of weights, eight warps share each group: fewer would not keep all multiprocessors
    // reading.
    constexpr std::int64_t kFewWeights = 16384;
    if (x.rows <= kTile) {
      if (w.rows <= kFewWeights) {
        launch.template operator()<1, 8, 8, 2>();
      } else {
        launch.template operator()<1, 4, 4, 4>();
      }
    } else {
      if (w.rows <= kFewWeights) {
        launch.template operator()<2, 8, 8, 2>();
      } else {
        launch.template operator()<2, 4, 4, 2>();
      }
    }
  });
  check_launch("linear: few rows of e4m3");
}

}  // namespace vigil::kernels
