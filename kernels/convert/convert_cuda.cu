#include <type_traits>

#include "kernels/convert/convert_backends.h"
#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

template <typename To, typename From>
__device__ __forceinline__ To as(From value) {
  if constexpr (std::is_same_v<From, To>) {
    return value;
  } else {
    return cuda::rounded<To>(cuda::number(value));
  }
}

/// One thread a pack; rows in the grid's second dimension would end at 65,535.
template <typename From, typename To, int count>
__global__ void __launch_bounds__(kThreads)
    convert(const From* from, std::int64_t from_stride, To* to, std::int64_t to_stride, std::int64_t rows,
            std::int64_t packs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / packs;
  if (row >= rows) return;
  const auto in = reinterpret_cast<const cuda::Pack<From, count>*>(from + row * from_stride)[at % packs];
  cuda::Pack<To, count> out;
#pragma unroll
  for (int j = 0; j < count; ++j) out.values[j] = as<To>(in.values[j]);
  reinterpret_cast<cuda::Pack<To, count>*>(to + row * to_stride)[at % packs] = out;
}

template <typename From, typename To>
void convert_as(cudaStream_t queue, ConstMatrix from, Matrix to) {
  // 16 bytes of the wider type.
  constexpr int kMost = sizeof(From) == 2 && sizeof(To) == 2 ? 8 : 4;
  const auto launch = [&]<int count>() {
    const std::int64_t packs = to.cols / count;
    convert<From, To, count><<<cuda::blocks_for(to.rows * packs, kThreads), kThreads, 0, queue>>>(
        from.row<From>(0), from.stride, to.row<To>(0), to.stride, to.rows, packs);
  };
  if (cuda::packs(from.data, from.stride, to.cols, sizeof(From), kMost) &&
      cuda::packs(to.data, to.stride, to.cols, sizeof(To), kMost)) {
    launch.template operator()<kMost>();
  } else {
    static SlowPath slow{"convert_rows", kOddRows};
    slow.taken();
    launch.template operator()<1>();
  }
}

}  // namespace

void cuda::convert_rows(Stream& stream, ConstMatrix from, Matrix to) {
  const cudaStream_t queue = queue_of(stream);
  // Bits that are only copied are not numbers.
  if (to.dtype == from.dtype && to.dtype == DType::f32) {
    convert_as<std::uint32_t, std::uint32_t>(queue, from, to);
  } else if (to.dtype == from.dtype) {
    convert_as<std::uint16_t, std::uint16_t>(queue, from, to);
  } else if (to.dtype == DType::bf16) {
    convert_as<float, __nv_bfloat16>(queue, from, to);
  } else {
    convert_as<__nv_bfloat16, float>(queue, from, to);
  }
  check_launch("convert_rows");
}

}  // namespace vigil::kernels
