#include "kernels/device/slow_path.h"
#include "kernels/quantize/quantize_backends.h"
#include "kernels/quantize/quantize_cuda.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

/// One block a row. The row is read twice, the second time from the first-level cache.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads) quantize_row(const T* x, std::int64_t x_stride, std::uint8_t* out,
                                                         std::int64_t out_stride, float* scales, int cols) {
  const auto* row = reinterpret_cast<const cuda::Pack<T, count>*>(x + blockIdx.x * x_stride);
  std::uint8_t* to = out + blockIdx.x * out_stride;
  const int packs = cols / count;

  std::uint32_t most = 0;
  for (int i = static_cast<int>(threadIdx.x); i < packs; i += kThreads) {
    const cuda::Pack<T, count> pack = row[i];
#pragma unroll
    for (int j = 0; j < count; ++j) most = max(most, cuda::magnitude(cuda::number(pack.values[j])));
  }
  const cuda::RowScale scale = cuda::row_scale<kThreads>(most);
  if (threadIdx.x == 0) scales[blockIdx.x] = scale.scale;

  for (int i = static_cast<int>(threadIdx.x); i < packs; i += kThreads) {
    const cuda::Pack<T, count> pack = row[i];
    float values[count];
#pragma unroll
    for (int j = 0; j < count; ++j) values[j] = cuda::number(pack.values[j]);
    reinterpret_cast<cuda::Pack<std::uint8_t, count>*>(to)[i] = cuda::rounded_e4m3(values, scale.inverse);
  }
  cuda::pad_e4m3<kThreads>(to, cols);
}

}  // namespace

void cuda::quantize_rows(Stream& stream, ConstMatrix x, Matrix out) {
  const cudaStream_t queue = queue_of(stream);
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    constexpr int kMost = 16 / sizeof(T);
    const auto with = [&]<int count>() {
      quantize_row<T, count><<<static_cast<unsigned>(x.rows), kThreads, 0, queue>>>(
          x.row<T>(0), x.stride, out.row<std::uint8_t>(0), out.stride, out.scales, static_cast<int>(x.cols));
    };
    if (packs(x.data, x.stride, x.cols, sizeof(T), kMost)) {
      with.template operator()<kMost>();
    } else {
      static SlowPath slow{"quantize_rows", kOddRows};
      slow.taken();
      with.template operator()<1>();
    }
  });
  check_launch("quantize_rows");
}

}  // namespace vigil::kernels
