#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/rms_norm/rms_norm_backends.h"
#include "kernels/rms_norm/rms_norm_e4m3_cuda.h"

namespace vigil::kernels {
namespace {

/// Of a block; with few rows it is latency that counts, and more threads each read less.
constexpr int kThreads = 256;
constexpr int kThreadsOfFew = 1024;
constexpr std::int64_t kFewRows = 132;

/// One block a row. The row is read twice, the second time from the first-level cache.
template <typename Out, int count, int threads>
__global__ void __launch_bounds__(threads)
    norm_row(const float* x, std::int64_t x_stride, const float* weight, float epsilon, Out* out,
             std::int64_t out_stride, int packs) {
  using In = cuda::Pack<float, count>;
  using To = cuda::Pack<Out, count>;
  const auto* row = reinterpret_cast<const In*>(x + blockIdx.x * x_stride);
  const auto* scales = reinterpret_cast<const In*>(weight);
  auto* to = reinterpret_cast<To*>(out + blockIdx.x * out_stride);

  cuda::let_next_begin();
  // The first weights, and of short rows all, before what wrote the row has ended.
  const auto thread = static_cast<int>(threadIdx.x);
  const In early = thread < packs ? scales[thread] : In{};
  cuda::await_previous();
  float squares = 0;
  for (int i = thread; i < packs; i += threads) {
    const In pack = row[i];
#pragma unroll
    for (int j = 0; j < count; ++j) squares += pack.values[j] * pack.values[j];
  }
  __shared__ float of_warp[threads / 32];
  squares = cuda::warp_sum(squares);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
#pragma unroll
  for (int warp = 0; warp < threads / 32; ++warp) squares += of_warp[warp];
  const float scale = rsqrtf(squares / static_cast<float>(packs * count) + epsilon);

  for (int i = thread; i < packs; i += threads) {
    const In pack = row[i];
    const In by = i == thread ? early : scales[i];
    To result;
#pragma unroll
    for (int j = 0; j < count; ++j)
      result.values[j] = cuda::rounded<Out>(pack.values[j] * scale * by.values[j]);
    to[i] = result;
  }
}

}  // namespace

void cuda::rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  const cudaStream_t queue = queue_of(stream);
  if (out.dtype == DType::e4m3) return rms_norm_e4m3(queue, x, weight, epsilon, out);
  with_type(out.dtype, [&](auto type) {
    using Out = decltype(type);
    const auto with = [&]<int count, int threads>() {
      launch_early(norm_row<Out, count, threads>, {static_cast<unsigned>(x.rows), threads}, queue,
                   x.row<float>(0), x.stride, weight, epsilon, out.row<Out>(0), out.stride,
                   static_cast<int>(x.cols / count));
    };
    const auto launch = [&]<int count>() {
      if (x.rows <= kFewRows) {
        with.template operator()<count, kThreadsOfFew>();
      } else {
        with.template operator()<count, kThreads>();
      }
    };
    if (packs(x.data, x.stride, x.cols, sizeof(float), 4) && packs(weight, 0, x.cols, sizeof(float), 4) &&
        packs(out.data, out.stride, x.cols, sizeof(Out), 4)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"rms_norm", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
}

}  // namespace vigil::kernels
