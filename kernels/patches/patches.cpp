#include "kernels/patches/patches.h"

#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/patches/patches_backends.h"

namespace vigil::kernels {

void cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int height, int width,
                 int patch_size, int merge_size, const LevelTable& table, Matrix out,
                 const std::int32_t* squares) {
  const int square = patch_size * merge_size;
  if (patch_size <= 0 || merge_size <= 0 || height <= 0 || width <= 0 || height % square != 0 ||
      width % square != 0)
    throw std::invalid_argument("cut_patches: " + std::to_string(width) + "x" + std::to_string(height) +
                                " is no whole number of squares of " + std::to_string(square) + " pixels");
  const auto values = static_cast<std::int64_t>(frames.size()) * 3 * patch_size * patch_size;
  const std::int64_t all = std::int64_t{height / patch_size} * (width / patch_size);
  const bool is_right = squares == nullptr
                            ? out.rows == all
                            : out.rows <= all && out.rows % (std::int64_t{merge_size} * merge_size) == 0;
  if (frames.empty() || out.cols != values || !is_right ||
      (out.dtype != DType::f32 && out.dtype != DType::bf16))
    throw std::invalid_argument("cut_patches: the result has another shape or type");
  if (out.rows == 0) return;
  VIGIL_ON_DEVICE(stream,
                  cut_patches(stream, frames, height, width, patch_size, merge_size, table, out, squares));
}

}  // namespace vigil::kernels
