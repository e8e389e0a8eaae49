#include "kernels/device/cuda.cuh"
#include "kernels/random/random_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    fill(T* to, std::int64_t stride, std::int64_t rows, std::int64_t cols, std::uint64_t seed, float scale,
         RandomPart part) {
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; at < rows * cols; at += step)
    to[at / cols * stride + at % cols] = cuda::rounded<T>(
        scale *
        random_number(seed, static_cast<std::uint64_t>(part.first + at / cols * part.pitch + at % cols)));
}

}  // namespace

void cuda::fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part) {
  const cudaStream_t queue = queue_of(stream);
  const auto blocks = static_cast<unsigned>(16 * stream.cuda_queue().multiprocessors());
  with_type(to.dtype, [&](auto type) {
    using T = decltype(type);
    fill<T><<<blocks, kThreads, 0, queue>>>(to.row<T>(0), to.stride, to.rows, to.cols, seed, scale, part);
  });
  check_launch("fill_random");
}

}  // namespace vigil::kernels
