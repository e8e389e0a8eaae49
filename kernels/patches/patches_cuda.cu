#include <stdexcept>
#include <string>

#include "kernels/device/cuda.cuh"
#include "kernels/patches/patches_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

/// What a launch carries by value.
struct Frames {
  const std::uint8_t* at[kMostFramesOnGpu];
};
struct Levels {
  float of[3][256];
};

/// One block a patch, its threads along the values of the row.
template <typename T>
__global__ void __launch_bounds__(kThreads)
    cut(Frames frames, int count, int width, int p, int m, const __grid_constant__ Levels table,
        const std::int32_t* squares, T* out, std::int64_t stride) {
  const int row = static_cast<int>(blockIdx.x);
  const int across = width / (p * m);
  const int square = squares == nullptr ? row / (m * m) : squares[row / (m * m)];
  const int patch_row = square / across * m + row / m % m;
  const int patch_column = square % across * m + row % m;
  const int values = 3 * count * p * p;
  for (int i = static_cast<int>(threadIdx.x); i < values; i += kThreads) {
    const int x = i % p;
    const int y = i / p % p;
    const int frame = i / (p * p) % count;
    const int colour = i / (p * p * count);
    const std::int64_t pixel = std::int64_t{patch_row * p + y} * width + patch_column * p + x;
    out[row * stride + i] = cuda::rounded<T>(table.of[colour][frames.at[frame][pixel * 3 + colour]]);
  }
}

}  // namespace

void cuda::cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int /*height*/, int width,
                       int patch_size, int merge_size, const LevelTable& table, Matrix out,
                       const std::int32_t* squares) {
  if (frames.size() > kMostFramesOnGpu)
    throw std::invalid_argument("cut_patches: a temporal patch of " + std::to_string(frames.size()) +
                                " frames, at most " + std::to_string(kMostFramesOnGpu) + " on a GPU");
  Frames pictures{};
  for (std::size_t i = 0; i < frames.size(); ++i) pictures.at[i] = frames[i];
  Levels levels{};
  for (std::size_t colour = 0; colour < 3; ++colour)
    for (std::size_t level = 0; level < 256; ++level) levels.of[colour][level] = table[colour][level];
  const cudaStream_t queue = queue_of(stream);
  with_type(out.dtype, [&](auto type) {
    using T = decltype(type);
    cut<T><<<static_cast<unsigned>(out.rows), kThreads, 0, queue>>>(pictures, static_cast<int>(frames.size()),
                                                                    width, patch_size, merge_size, levels,
                                                                    squares, out.row<T>(0), out.stride);
  });
  check_launch("cut_patches");
}

}  // namespace vigil::kernels
