// Where the largest number of each row is: greedy decoding without its logits leaving the device.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// columns[i]: the column of the largest number of row i of x (f32), the first of equal ones; NaN counts as
/// the smallest. -1 for a row with nothing above -infinity. If `values` is not null, values[i] is that
/// number, -infinity where there is none: for who compares columns of several matrices. Both lie on the
/// stream's device. Throws std::invalid_argument for another type.
void largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values = nullptr);

}  // namespace vigil::kernels
