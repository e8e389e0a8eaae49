// The implementations behind argmax.h, which has checked what they are given.
#pragma once

#include "kernels/argmax/argmax.h"

namespace vigil::kernels {
namespace cpu {
void largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values);
}
namespace cuda {
void largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values);
}
}  // namespace vigil::kernels
