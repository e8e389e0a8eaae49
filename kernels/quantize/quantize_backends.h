// The implementations behind quantize.h, which has checked what they are given.
#pragma once

#include "kernels/quantize/quantize.h"

namespace vigil::kernels {
namespace cpu {
void quantize_rows(Stream& stream, ConstMatrix x, Matrix out);
}
namespace cuda {
void quantize_rows(Stream& stream, ConstMatrix x, Matrix out);
}
}  // namespace vigil::kernels
