#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Frames of a temporal patch on a GPU, at most.
inline constexpr std::size_t kMostFramesOnGpu = 8;

/// What each level of each colour becomes: rescaling and normalisation in one table.
using LevelTable = std::array<std::array<float, 256>, 3>;

/// Cuts one temporal patch into the rows that the vision tower takes: 8-bit RGB to numbers in one pass.
///
/// `frames` are the pictures of the patch, oldest first, each [height, width, 3] tightly packed. With p =
/// `patch_size` and m = `merge_size`, row ((Y * width/(p m) + X) * m + dy) * m + dx of `out` is the patch at
/// patch row Y m + dy, patch column X m + dx; within a row the order is [3, frames, p, p]. `out` is [height/p
/// * width/p, 3 * frames * p * p], f32 or bf16 (rounded to nearest even).
///
/// `squares`: on the stream's device, the squares of m * m patches that are wanted, Y * width/(p m) + X each;
/// `out` has the rows of these alone, in this order. Null: all.
///
/// Throws std::invalid_argument for sizes that do not fit, on a GPU for more than kMostFramesOnGpu frames.
void cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int height, int width,
                 int patch_size, int merge_size, const LevelTable& table, Matrix out,
                 const std::int32_t* squares = nullptr);

}  // namespace vigil::kernels
