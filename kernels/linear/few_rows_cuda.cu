#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"
#include "kernels/linear/activate_cuda.h"
#include "kernels/linear/few_rows_cuda.h"

namespace vigil::kernels {
namespace {

using bfloat = __nv_bfloat16;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
/// Rows of weights of a warp: its loads in flight are this times what is unrolled.
constexpr int kWeights = 2;
constexpr int kMostRows = 4;
/// Packs of each row of weights that a thread loads before it waits for the kernel before.
constexpr int kAhead = 4;
/// Up to so many rows of weights, four warps share each: fewer would not keep all multiprocessors reading to
/// the end.
constexpr std::int64_t kFewWeights = 8192;

/// 16 bytes that nobody reads again.
__device__ __forceinline__ uint4 stream_in(const uint4* from) {
  uint4 value;
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(from));
  return value;
}

/// The sum of eight products of bf16 numbers, two in a word.
__device__ __forceinline__ float dot(const uint4& a, const uint4& b) {
  float sum = 0;
  const std::uint32_t x[4] = {a.x, a.y, a.z, a.w};
  const std::uint32_t y[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sum = fmaf(__uint_as_float(x[i] << 16U), __uint_as_float(y[i] << 16U), sum);
    sum = fmaf(__uint_as_float(x[i] & 0xffff0000U), __uint_as_float(y[i] & 0xffff0000U), sum);
  }
  return sum;
}

template <typename Out>
struct Call {
  const bfloat* x;
  std::int64_t x_stride;
  const bfloat* w;
  std::int64_t w_stride;
  const float* bias;
  Out* out;
  std::int64_t out_stride;
  std::int64_t cols;
  int packs;
  bool accumulate;
  Activation activation;
};

/// `kShare` neighbouring warps take the same kWeights rows of w, each a part of their length: neighbours, or
/// with `kGated` a column's gate and its value. x is small and stays in the first-level cache. Weights are on
/// their way while the kernel before ends, which the norms, the attention and the sums between two products
/// leave the memory time for.
template <int kRows, int kShare, bool kGated, typename Out>
__global__ void __launch_bounds__(kThreads) multiply(const Call<Out> call) {
  constexpr int kColumns = kGated ? 1 : kWeights;
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int warp = static_cast<int>(threadIdx.x / 32);
  const std::int64_t first = (std::int64_t{blockIdx.x} * (kWarps / kShare) + warp / kShare) * kColumns;
  const uint4* weights[kWeights];
#pragma unroll
  for (int i = 0; i < kWeights; ++i) {
    const std::int64_t row =
        kGated ? min(first, call.cols - 1) + i * call.cols : min(first + i, call.cols - 1);
    weights[i] = reinterpret_cast<const uint4*>(call.w + row * call.w_stride);
  }

  float sums[kRows][kWeights] = {};
  const auto add = [&](int at, const uint4(&weight)[kWeights]) {
#pragma unroll
    for (int row = 0; row < kRows; ++row) {
      const uint4 values = reinterpret_cast<const uint4*>(call.x + row * call.x_stride)[at];
#pragma unroll
      for (int i = 0; i < kWeights; ++i) sums[row][i] += dot(weight[i], values);
    }
  };
  const int begin = warp % kShare * 32 + lane;
  constexpr int kStep = 32 * kShare;
  uint4 early[kAhead][kWeights];
#pragma unroll
  for (int ahead = 0; ahead < kAhead; ++ahead)
#pragma unroll
    for (int i = 0; i < kWeights; ++i)
      early[ahead][i] = stream_in(weights[i] + min(begin + ahead * kStep, call.packs - 1));
  cuda::let_next_begin();
  cuda::await_previous();
#pragma unroll
  for (int ahead = 0; ahead < kAhead; ++ahead)
    if (begin + ahead * kStep < call.packs) add(begin + ahead * kStep, early[ahead]);
#pragma unroll 7
  for (int at = begin + kAhead * kStep; at < call.packs; at += kStep) {
    uint4 weight[kWeights];
#pragma unroll
    for (int i = 0; i < kWeights; ++i) weight[i] = stream_in(weights[i] + at);
    add(at, weight);
  }

  __shared__ float shares[kWarps][kRows][kWeights];
#pragma unroll
  for (int row = 0; row < kRows; ++row)
#pragma unroll
    for (int i = 0; i < kWeights; ++i) {
      const float sum = cuda::warp_sum(sums[row][i]);
      if (lane == 0) shares[warp][row][i] = sum;
    }
  __syncthreads();
  // One thread an element; the first warp of those that share one writes it.
  if (warp % kShare != 0 || lane >= kRows * kColumns) return;
  const int row = lane / kColumns;
  const std::int64_t col = first + lane % kColumns;
  if (col >= call.cols) return;
  const auto total = [&](int of, std::int64_t bias_at) {
    float sum = call.bias != nullptr ? call.bias[bias_at] : 0.0F;
#pragma unroll
    for (int share = 0; share < kShare; ++share) sum += shares[warp + share][row][of];
    return sum;
  };
  Out* to = call.out + row * call.out_stride + col;
  if constexpr (kGated) {
    *to = cuda::rounded<Out>(cuda::activate(total(0, col), call.activation) * total(1, call.cols + col));
  } else {
    const float sum = total(lane % kColumns, col);
    *to = cuda::rounded<Out>(call.accumulate ? cuda::number(*to) + sum : sum);
  }
}

template <bool kGated, typename Out>
void run(cudaStream_t stream, std::int64_t rows, const Call<Out>& call) {
  const auto shared_by = [&]<int kRows, int kShare>() {
    constexpr int kColumns = kWarps / kShare * (kGated ? 1 : kWeights);
    cuda::launch_early(multiply<kRows, kShare, kGated, Out>,
                       {cuda::blocks_for(call.cols, kColumns), kThreads}, stream, call);
  };
  const auto launch = [&]<int kRows>() {
    if (call.cols <= kFewWeights) {
      shared_by.template operator()<kRows, 4>();
    } else {
      shared_by.template operator()<kRows, 1>();
    }
  };
  switch (rows) {
    case 1:
      return launch.template operator()<1>();
    case 2:
      return launch.template operator()<2>();
    case 3:
      return launch.template operator()<3>();
    default:
      return launch.template operator()<4>();
  }
}

}  // namespace

bool cuda::fits_few_rows(ConstMatrix x, ConstMatrix w) {
  return x.dtype == DType::bf16 && x.rows <= kMostRows && x.cols > 0 &&
         packs(x.data, x.stride, x.cols, sizeof(bfloat), 8) &&
         packs(w.data, w.stride, w.cols, sizeof(bfloat), 8);
}

void cuda::few_rows(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                    bool accumulate) {
  with_type(out.dtype, [&](auto type) {
    using Out = decltype(type);
    run<false, Out>(stream, x.rows,
                    {x.row<bfloat>(0), x.stride, w.row<bfloat>(0), w.stride, bias, out.row<Out>(0),
                     out.stride, w.rows, static_cast<int>(x.cols / 8), accumulate, Activation::none});
  });
}

void cuda::few_rows_gated(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, const float* bias,
                          Activation activation) {
  with_type(out.dtype, [&](auto type) {
    using Out = decltype(type);
    run<true, Out>(stream, x.rows,
                   {x.row<bfloat>(0), x.stride, w.row<bfloat>(0), w.stride, bias, out.row<Out>(0), out.stride,
                    w.rows / 2, static_cast<int>(x.cols / 8), false, activation});
  });
}

}  // namespace vigil::kernels
