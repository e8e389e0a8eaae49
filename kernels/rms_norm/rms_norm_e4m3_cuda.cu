#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/quantize/quantize_cuda.h"
#include "kernels/rms_norm/rms_norm_e4m3_cuda.h"

namespace vigil::kernels {
namespace {

/// Of a block; with few rows it is latency that counts, and more threads each read less.
constexpr int kThreads = 256;
constexpr int kThreadsOfFew = 1024;
constexpr std::int64_t kFewRows = 132;
/// Packs of a row that a thread keeps; it reads the rest of a longer row again.
constexpr int kKept = 4;
constexpr int kKeptOfFew = 1;

/// One block a row.
template <int count, int threads, int kept>
__global__ void __launch_bounds__(threads)
    norm_row(const float* x, std::int64_t x_stride, const float* weight, float epsilon, std::uint8_t* out,
             std::int64_t out_stride, float* scales, int cols) {
  using In = cuda::Pack<float, count>;
  const auto* row = reinterpret_cast<const In*>(x + blockIdx.x * x_stride);
  const auto* weights = reinterpret_cast<const In*>(weight);
  std::uint8_t* to = out + blockIdx.x * out_stride;
  const int packs = cols / count;
  const int first = static_cast<int>(threadIdx.x);

  cuda::let_next_begin();
  cuda::await_previous();
  In mine[kept];
  const auto each = [&](const auto& visit) {
#pragma unroll
    for (int h = 0; h < kept; ++h)
      if (first + h * threads < packs) visit(first + h * threads, mine[h]);
    for (int i = first + kept * threads; i < packs; i += threads) {
      In pack = row[i];
      visit(i, pack);
    }
  };
#pragma unroll
  for (int h = 0; h < kept; ++h)
    if (first + h * threads < packs) mine[h] = row[first + h * threads];

  float squares = 0;
  each([&](int, In& pack) {
#pragma unroll
    for (int j = 0; j < count; ++j) squares += pack.values[j] * pack.values[j];
  });
  __shared__ float of_warp[threads / 32];
  squares = cuda::warp_sum(squares);
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = squares;
  __syncthreads();
  squares = 0;
#pragma unroll
  for (int warp = 0; warp < threads / 32; ++warp) squares += of_warp[warp];
  const float norm = rsqrtf(squares / static_cast<float>(packs * count) + epsilon);

  std::uint32_t most = 0;
  each([&](int i, In& pack) {
    const In by = weights[i];
#pragma unroll
    for (int j = 0; j < count; ++j) most = max(most, cuda::magnitude(pack.values[j] * norm * by.values[j]));
  });
  const cuda::RowScale scale = cuda::row_scale<threads>(most);
  if (threadIdx.x == 0) scales[blockIdx.x] = scale.scale;

  each([&](int i, In& pack) {
    const In by = weights[i];
    float values[count];
#pragma unroll
    for (int j = 0; j < count; ++j) values[j] = pack.values[j] * norm * by.values[j];
    reinterpret_cast<cuda::Pack<std::uint8_t, count>*>(to)[i] = cuda::rounded_e4m3(values, scale.inverse);
  });
  cuda::pad_e4m3<threads>(to, cols);
}

}  // namespace

void cuda::rms_norm_e4m3(cudaStream_t stream, ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  const auto with = [&]<int count, int threads, int kept>() {
    launch_early(norm_row<count, threads, kept>, {static_cast<unsigned>(x.rows), threads}, stream,
                 x.row<float>(0), x.stride, weight, epsilon, out.row<std::uint8_t>(0), out.stride, out.scales,
                 static_cast<int>(x.cols));
  };
  const auto launch = [&]<int count>() {
    if (x.rows <= kFewRows) {
      with.template operator()<count, kThreadsOfFew, kKeptOfFew>();
    } else {
      with.template operator()<count, kThreads, kKept>();
    }
  };
  if (packs(x.data, x.stride, x.cols, sizeof(float), 4) && packs(weight, 0, x.cols, sizeof(float), 4)) {
    launch.template operator()<4>();
  } else {
    static SlowPath slow{"rms_norm", kOddRows};
    slow.taken();
    launch.template operator()<1>();
  }
}

}  // namespace vigil::kernels
