#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/linear/activate_cuda.h"
#include "kernels/linear/gate_e4m3_cuda.h"
#include "kernels/quantize/quantize_cuda.h"

namespace vigil::kernels {
namespace {

/// Packs of 16 bytes of a row that a thread keeps between finding the scale and rounding; the rest of a
/// longer row it computes again.
constexpr int kKept = 8;

/// Numbers that were rounded to a type, in words that stay in registers.
template <typename T, int count>
struct Rounded {
  float words[count];
  __device__ void set(const float (&values)[count]) {
#pragma unroll
    for (int j = 0; j < count; ++j) words[j] = values[j];
  }
  __device__ void get(float (&values)[count]) const {
#pragma unroll
    for (int j = 0; j < count; ++j) values[j] = words[j];
  }
};
template <int count>
struct Rounded<__nv_bfloat16, count> {
  std::uint32_t words[(count + 1) / 2];
  __device__ void set(const float (&values)[count]) {
#pragma unroll
    for (int j = 0; j < count; j += 2) {
      const auto low =
          static_cast<std::uint32_t>(__bfloat16_as_ushort(cuda::rounded<__nv_bfloat16>(values[j])));
      const auto high = j + 1 < count ? static_cast<std::uint32_t>(__bfloat16_as_ushort(
                                            cuda::rounded<__nv_bfloat16>(values[j + 1 < count ? j + 1 : j])))
                                      : 0U;
      words[j / 2] = low | high << 16U;
    }
  }
  __device__ void get(float (&values)[count]) const {
#pragma unroll
    for (int j = 0; j < count; ++j)
      values[j] = __uint_as_float(j % 2 == 0 ? words[j / 2] << 16U : words[j / 2] & 0xffff0000U);
  }
};

/// One block a row.
template <typename T, int count, int threads, Activation activation>
__global__ void __launch_bounds__(threads, 1024 / threads)
    gate_row(const T* gate, std::int64_t gate_stride, const T* multiply, std::int64_t multiply_stride,
             std::uint8_t* out, std::int64_t out_stride, float* scales, int cols) {
  using In = cuda::Pack<T, count>;
  const auto* gates = reinterpret_cast<const In*>(gate + blockIdx.x * gate_stride);
  const auto* factors = reinterpret_cast<const In*>(multiply + blockIdx.x * multiply_stride);
  std::uint8_t* to = out + blockIdx.x * out_stride;
  const int packs = cols / count;
  const int first = static_cast<int>(threadIdx.x);

  cuda::let_next_begin();
  cuda::await_previous();
  const auto product = [&](int i) {
    const In by = factors[i];
    const In pack = gates[i];
    float values[count];
#pragma unroll
    for (int j = 0; j < count; ++j)
      values[j] = cuda::activate(cuda::number(pack.values[j]), activation) * cuda::number(by.values[j]);
    Rounded<T, count> result;
    result.set(values);
    return result;
  };
  Rounded<T, count> mine[kKept];
  std::uint32_t most = 0;
  const auto look = [&](const Rounded<T, count>& pack) {
    float values[count];
    pack.get(values);
#pragma unroll
    for (int j = 0; j < count; ++j) most = max(most, cuda::magnitude(values[j]));
  };
#pragma unroll
  for (int h = 0; h < kKept; ++h)
    if (first + h * threads < packs) {
      mine[h] = product(first + h * threads);
      look(mine[h]);
    }
  for (int i = first + kKept * threads; i < packs; i += threads) look(product(i));
  const cuda::RowScale scale = cuda::row_scale<threads>(most);
  if (threadIdx.x == 0) scales[blockIdx.x] = scale.scale;

  const auto store = [&](int i, const Rounded<T, count>& pack) {
    float values[count];
    pack.get(values);
    reinterpret_cast<cuda::Pack<std::uint8_t, count>*>(to)[i] = cuda::rounded_e4m3(values, scale.inverse);
  };
#pragma unroll
  for (int h = 0; h < kKept; ++h)
    if (first + h * threads < packs) store(first + h * threads, mine[h]);
  for (int i = first + kKept * threads; i < packs; i += threads) store(i, product(i));
  cuda::pad_e4m3<threads>(to, cols);
}

template <typename T, Activation activation>
void launch(cudaStream_t stream, ConstMatrix gate, ConstMatrix multiply, Matrix out) {
  constexpr int kMost = 16 / sizeof(T);
  const auto with = [&]<int count, int threads>() {
    cuda::launch_early(gate_row<T, count, threads, activation>, {static_cast<unsigned>(gate.rows), threads},
                       stream, gate.row<T>(0), gate.stride, multiply.row<T>(0), multiply.stride,
                       out.row<std::uint8_t>(0), out.stride, out.scales, static_cast<int>(gate.cols));
  };
  if (!cuda::packs(gate.data, gate.stride, gate.cols, sizeof(T), kMost) ||
      !cuda::packs(multiply.data, multiply.stride, gate.cols, sizeof(T), kMost)) {
    static SlowPath slow{"quantized_gate", kOddRows};
    slow.taken();
    with.template operator()<1, 512>();
  } else if (gate.cols <= std::int64_t{128} * kKept * kMost && gate.rows > 132) {
    with.template operator()<kMost, 128>();
  } else {
    with.template operator()<kMost, 512>();
  }
}

}  // namespace

void cuda::gate_e4m3(cudaStream_t stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                     Matrix out) {
  with_type(gate.dtype, [&](auto type) {
    using T = decltype(type);
    switch (activation) {
      case Activation::none:
        return launch<T, Activation::none>(stream, gate, multiply, out);
      case Activation::gelu:
        return launch<T, Activation::gelu>(stream, gate, multiply, out);
      case Activation::silu:
        return launch<T, Activation::silu>(stream, gate, multiply, out);
    }
  });
}

}  // namespace vigil::kernels
