// The implementations behind gather.h, which has checked what they are given.
#pragma once

#include "kernels/gather/gather.h"

namespace vigil::kernels {
namespace cpu {
void gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);
void scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);
}  // namespace cpu
namespace cuda {
void gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);
void scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);
}  // namespace cuda
}  // namespace vigil::kernels
