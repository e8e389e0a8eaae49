// The implementations behind patches.h, which has checked what they are given.
#pragma once

#include "kernels/patches/patches.h"

namespace vigil::kernels {
namespace cpu {
void cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int height, int width,
                 int patch_size, int merge_size, const LevelTable& table, Matrix out,
                 const std::int32_t* squares);
}
namespace cuda {
void cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int height, int width,
                 int patch_size, int merge_size, const LevelTable& table, Matrix out,
                 const std::int32_t* squares);
}
}  // namespace vigil::kernels
