// The implementations behind top_k.h, which has checked what they are given.
#pragma once

#include "kernels/top_k/top_k.h"

namespace vigil::kernels {
namespace cpu {
void top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values);
}
namespace cuda {
void top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values);
}
}  // namespace vigil::kernels
