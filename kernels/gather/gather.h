// Rows of a matrix picked or placed by index: embeddings of tokens, results that are wanted, another order.
#pragma once

#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// to[i, :] = from[rows[i], :], converted to f32 if `to` is f32.
///
/// from: f32, bf16 or f16 [any, cols]; to: from's type or f32 [count, cols]; rows: [to.rows] on the stream's
/// device, each a row of `from` (not checked). `from` and `to` may not overlap. Throws std::invalid_argument
/// for shapes or types that do not fit.
void gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);

/// to[rows[i], :] = from[i, :]; the other rows of `to` stay.
///
/// from: f32 or bf16 [count, cols]; to: the same type [any, cols]; rows: [from.rows] on the stream's device,
/// each another row of `to` (not checked). `from` and `to` may not overlap. Throws std::invalid_argument for
/// shapes or types that do not fit.
void scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to);

}  // namespace vigil::kernels
