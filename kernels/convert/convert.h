// Rows of a matrix in another type: what is kept in bf16 and computed with in f32.
#pragma once

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// to[i, j] = from[i, j] in the type of `to`: rounded to nearest, ties to even, from f32 to bf16 (NaN stays
/// NaN, of any bits), exact otherwise; of the same type the bits are copied.
///
/// from and to: f32 or bf16 [rows, cols], each of either type, on the stream's device; they may not overlap.
/// What lies between rows is not written. Throws std::invalid_argument for shapes, strides or types that do
/// not fit.
void convert_rows(Stream& stream, ConstMatrix from, Matrix to);

}  // namespace vigil::kernels
