#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/rope/rope_angle.h"
#include "kernels/rope/rope_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

/// One thread a pack of pairs of one head of one row.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads) rotate(T* x, std::int64_t stride, std::int64_t rows, int heads,
                                                   int half, const float* cos, const float* sin) {
  using Values = cuda::Pack<T, count>;
  using Angles = cuda::Pack<float, count>;
  const int packs = half / count;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / (heads * packs);
  if (row >= rows) return;
  const int within = static_cast<int>(at % (heads * packs));
  const int pack = within % packs;
  auto* low = reinterpret_cast<Values*>(x + row * stride + within / packs * 2 * half) + pack;
  auto* high = low + packs;
  const Angles c = reinterpret_cast<const Angles*>(cos + row * half)[pack];
  const Angles s = reinterpret_cast<const Angles*>(sin + row * half)[pack];
  Values a = *low;
  Values b = *high;
#pragma unroll
  for (int j = 0; j < count; ++j) {
    const float first = cuda::number(a.values[j]);
    const float second = cuda::number(b.values[j]);
    a.values[j] = cuda::rounded<T>(first * c.values[j] - second * s.values[j]);
    b.values[j] = cuda::rounded<T>(second * c.values[j] + first * s.values[j]);
  }
  *low = a;
  *high = b;
}

template <RopeAngles precision>
__global__ void __launch_bounds__(kThreads)
    turn(const RopePosition* positions, std::int64_t rows, const RopeFrequency* frequencies, int pairs,
         float* cos, float* sin) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= rows * pairs) return;
  const RopeFrequency frequency = frequencies[at % pairs];
  const auto* axes = reinterpret_cast<const std::int32_t*>(positions) + at / pairs * 3;
  const std::int32_t position = axes[frequency.axis];
  // Not the fast functions: f32 angles of far positions are large, and those of f64 are to stay exact.
  if constexpr (precision == RopeAngles::wide) {
    double of_cos = 0;
    double of_sin = 0;
    sincos(angle_within_turn(position, frequency.inverse), &of_sin, &of_cos);
    cos[at] = static_cast<float>(of_cos);
    sin[at] = static_cast<float>(of_sin);
  } else {
    sincosf(static_cast<float>(position) * frequency.inverse, sin + at, cos + at);
  }
}

}  // namespace

void cuda::rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t half = head_dim / 2;
  const auto heads = static_cast<int>(x.cols / head_dim);
  with_type(x.dtype, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&]<int count>() {
      rotate<T, count><<<blocks_for(x.rows * heads * (half / count), kThreads), kThreads, 0, queue>>>(
          x.row<T>(0), x.stride, x.rows, heads, static_cast<int>(half), cos, sin);
    };
    if (packs(x.data, x.stride, half, sizeof(T), 4) && packs(cos, half, half, sizeof(float), 4) &&
        packs(sin, half, half, sizeof(float), 4)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"rope", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
  check_launch("rope");
}

void cuda::rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                       const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                       float* sin) {
  const auto kernel = precision == RopeAngles::wide ? turn<RopeAngles::wide> : turn<RopeAngles::single>;
  kernel<<<blocks_for(rows * pairs, kThreads), kThreads, 0, queue_of(stream)>>>(
      positions, rows, frequencies, static_cast<int>(pairs), cos, sin);
  check_launch("rope_angles");
}

}  // namespace vigil::kernels
