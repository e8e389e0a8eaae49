// Rows of numbers to rows of E4M3 on the CPU, for all operations that have such results.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"

namespace vigil::kernels::cpu {

/// Row i of `out` from as many numbers, as quantize.h says it.
void quantize_row(const float* values, Matrix out, std::int64_t i);

}  // namespace vigil::kernels::cpu
