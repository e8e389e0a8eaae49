#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/linear/activate_cuda.h"
#include "kernels/linear/epilogue_cuda.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

/// One thread a pack; `multiply` null: no gate.
template <typename T, int count, Activation activation>
__global__ void __launch_bounds__(kThreads)
    epilogue(T* out, std::int64_t stride, std::int64_t rows, std::int64_t packs, const float* bias,
             const T* multiply, std::int64_t multiply_stride) {
  using Values = cuda::Pack<T, count>;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / packs;
  if (row >= rows) return;
  const std::int64_t pack = at % packs;
  auto* place = reinterpret_cast<Values*>(out + row * stride) + pack;
  Values values = *place;
  Values gate{};
  if (multiply != nullptr) gate = reinterpret_cast<const Values*>(multiply + row * multiply_stride)[pack];
#pragma unroll
  for (int j = 0; j < count; ++j) {
    float value = cuda::number(values.values[j]);
    if (bias != nullptr) value += bias[pack * count + j];
    value = cuda::activate(value, activation);
    if (multiply != nullptr) value *= cuda::number(gate.values[j]);
    values.values[j] = cuda::rounded<T>(value);
  }
  *place = values;
}

template <typename T, Activation activation>
void launch(cudaStream_t stream, Matrix out, const float* bias, ConstMatrix multiply) {
  constexpr int kMost = 16 / sizeof(T);
  const auto with = [&]<int count>() {
    const std::int64_t packs = out.cols / count;
    epilogue<T, count, activation><<<cuda::blocks_for(out.rows * packs, kThreads), kThreads, 0, stream>>>(
        out.row<T>(0), out.stride, out.rows, packs, bias, multiply.row<T>(0), multiply.stride);
  };
  if (cuda::packs(out.data, out.stride, out.cols, sizeof(T), kMost) &&
      (multiply.data == nullptr || cuda::packs(multiply.data, multiply.stride, out.cols, sizeof(T), kMost))) {
    with.template operator()<kMost>();
  } else {
    static SlowPath slow{"linear: bias, activation or gate", kOddRows};
    slow.taken();
    with.template operator()<1>();
  }
}

template <typename In, typename Out>
__global__ void __launch_bounds__(kThreads)
    multiply_elements(const In* x, std::int64_t x_stride, const float* x_scales, const In* w,
                      std::int64_t w_stride, const float* w_scales, Out* out, std::int64_t out_stride,
                      std::int64_t rows, std::int64_t cols, std::int64_t inner, bool accumulate) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / cols;
  if (row >= rows) return;
  const std::int64_t col = at % cols;
  float sum = 0;
  for (std::int64_t j = 0; j < inner; ++j)
    sum += cuda::number(x[row * x_stride + j]) * cuda::number(w[col * w_stride + j]);
  if (x_scales != nullptr) sum = sum * x_scales[row] * w_scales[col];
  Out* to = out + row * out_stride + col;
  *to = cuda::rounded<Out>(accumulate ? cuda::number(*to) + sum : sum);
}

}  // namespace

void cuda::apply_epilogue(cudaStream_t stream, Matrix out, const float* bias, Activation activation,
                          ConstMatrix multiply) {
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    switch (activation) {
      case Activation::none:
        return launch<T, Activation::none>(stream, out, bias, multiply);
      case Activation::gelu:
        return launch<T, Activation::gelu>(stream, out, bias, multiply);
      case Activation::silu:
        return launch<T, Activation::silu>(stream, out, bias, multiply);
    }
  });
  check_launch("linear: epilogue");
}

void cuda::plain_product(cudaStream_t stream, ConstMatrix x, ConstMatrix w, Matrix out, bool accumulate) {
  with_type(out.dtype, [&](auto to) {
    const auto of = [&](auto in) {
      using In = decltype(in);
      using Out = decltype(to);
      multiply_elements<In, Out><<<blocks_for(out.rows * out.cols, kThreads), kThreads, 0, stream>>>(
          x.row<In>(0), x.stride, x.scales, w.row<In>(0), w.stride, w.scales, out.row<Out>(0), out.stride,
          out.rows, out.cols, x.cols, accumulate);
    };
    if (x.dtype == DType::e4m3) {
      of(__nv_fp8_e4m3{});
    } else {
      with_type(x.dtype, of);
    }
  });
  check_launch("linear: plain product");
}

}  // namespace vigil::kernels
