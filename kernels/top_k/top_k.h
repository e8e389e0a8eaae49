// The largest numbers of each row: sampling among a few tokens without all logits leaving the device.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

inline constexpr std::int64_t kMostTopK = 1024;

/// columns and values, [x.rows, count] each: the columns of the `count` largest numbers of each row of x
/// (f32), and these numbers; the largest first, equal ones by their columns. NaN counts as -infinity. Where a
/// row has fewer numbers above -infinity, what is left is -1 and -infinity. Both lie on the stream's device.
/// Throws std::invalid_argument for another type, and for a count below 1 or above kMostTopK.
void top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values);

}  // namespace vigil::kernels
