#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/gather/gather_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

template <typename From, typename To>
__device__ __forceinline__ To as(From value) {
  if constexpr (sizeof(From) == sizeof(To)) {
    return value;
  } else {
    return cuda::number(value);
  }
}

/// One thread a pack; rows in the grid's second dimension would end at 65,535.
template <typename From, typename To, int count>
__global__ void __launch_bounds__(kThreads)
    pick(const From* from, std::int64_t from_stride, const std::int32_t* rows, To* to, std::int64_t to_stride,
         std::int64_t to_rows, std::int64_t packs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / packs;
  if (row >= to_rows) return;
  const auto in =
      reinterpret_cast<const cuda::Pack<From, count>*>(from + rows[row] * from_stride)[at % packs];
  cuda::Pack<To, count> out;
#pragma unroll
  for (int j = 0; j < count; ++j) out.values[j] = as<From, To>(in.values[j]);
  reinterpret_cast<cuda::Pack<To, count>*>(to + row * to_stride)[at % packs] = out;
}

/// As `pick`, the other way round.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads)
    put(const T* from, std::int64_t from_stride, std::int64_t from_rows, const std::int32_t* rows, T* to,
        std::int64_t to_stride, std::int64_t packs) {
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / packs;
  if (row >= from_rows) return;
  reinterpret_cast<cuda::Pack<T, count>*>(to + rows[row] * to_stride)[at % packs] =
      reinterpret_cast<const cuda::Pack<T, count>*>(from + row * from_stride)[at % packs];
}

template <typename T>
void scatter(cudaStream_t queue, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  const auto launch = [&]<int count>() {
    const std::int64_t packs = to.cols / count;
    put<T, count><<<cuda::blocks_for(from.rows * packs, kThreads), kThreads, 0, queue>>>(
        from.row<T>(0), from.stride, from.rows, rows, to.row<T>(0), to.stride, packs);
  };
  if (cuda::packs(from.data, from.stride, to.cols, sizeof(T), 4) &&
      cuda::packs(to.data, to.stride, to.cols, sizeof(T), 4)) {
    launch.template operator()<4>();
  } else {
    static SlowPath slow{"scatter_rows", kOddRows};
    slow.taken();
    launch.template operator()<1>();
  }
}

template <typename From, typename To>
void gather(cudaStream_t queue, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  const auto launch = [&]<int count>() {
    const std::int64_t packs = to.cols / count;
    pick<From, To, count><<<cuda::blocks_for(to.rows * packs, kThreads), kThreads, 0, queue>>>(
        from.row<From>(0), from.stride, rows, to.row<To>(0), to.stride, to.rows, packs);
  };
  if (cuda::packs(from.data, from.stride, to.cols, sizeof(From), 4) &&
      cuda::packs(to.data, to.stride, to.cols, sizeof(To), 4)) {
    launch.template operator()<4>();
  } else {
    static SlowPath slow{"gather_rows", kOddRows};
    slow.taken();
    launch.template operator()<1>();
  }
}

}  // namespace

void cuda::gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  const cudaStream_t queue = queue_of(stream);
  if (to.dtype == from.dtype && from.dtype == DType::f32) {
    gather<float, float>(queue, from, rows, to);
  } else if (to.dtype == from.dtype) {
    gather<std::uint16_t, std::uint16_t>(queue, from, rows, to);
  } else if (from.dtype == DType::bf16) {
    gather<__nv_bfloat16, float>(queue, from, rows, to);
  } else {
    gather<__half, float>(queue, from, rows, to);
  }
  check_launch("gather_rows");
}

void cuda::scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  const cudaStream_t queue = queue_of(stream);
  if (from.dtype == DType::f32) {
    scatter<float>(queue, from, rows, to);
  } else {
    scatter<std::uint16_t>(queue, from, rows, to);
  }
  check_launch("scatter_rows");
}

}  // namespace vigil::kernels
