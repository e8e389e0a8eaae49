// The implementations behind convert.h, which has checked what they are given.
#pragma once

#include "kernels/convert/convert.h"

namespace vigil::kernels {
namespace cpu {
void convert_rows(Stream& stream, ConstMatrix from, Matrix to);
}
namespace cuda {
void convert_rows(Stream& stream, ConstMatrix from, Matrix to);
}
}  // namespace vigil::kernels
