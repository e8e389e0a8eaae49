// Matrices in E4M3 with a scale a row: half of the bytes of bf16, and products at twice its rate.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Elements from one row of an e4m3 matrix to the next, at least: products of a GPU take 16 at once. Zeros
/// follow those of a row, up to the multiple of 16.
constexpr std::int64_t e4m3_stride(std::int64_t cols) {
  return (cols + 15) / 16 * 16;
}

/// Bytes of an e4m3 matrix with its scales.
constexpr std::size_t e4m3_bytes(std::int64_t rows, std::int64_t cols) {
  return static_cast<std::size_t>(rows) * (static_cast<std::size_t>(e4m3_stride(cols)) + sizeof(float));
}

/// An e4m3 matrix in so many bytes of memory, which begins at a multiple of 16: its elements, then its
/// scales.
Matrix e4m3_matrix(void* memory, std::int64_t rows, std::int64_t cols);

/// Whether results in E4M3 can be written there.
inline bool holds_e4m3(Matrix to) {
  return to.dtype == DType::e4m3 && to.scales != nullptr && to.stride % 16 == 0 && to.stride >= to.cols &&
         reinterpret_cast<std::uintptr_t>(to.data) % 16 == 0;
}

/// Rounds each row of x to E4M3 after division by a scale of its own:
///
///   scales[i] = max(max |x[i, :]| / 448, 2^-126),   out[i, j] = e4m3(x[i, j] · (1 / scales[i]))
///
/// in f32, each step rounded to nearest; so the largest number of a row becomes 448, and a row of zeros stays
/// one. A row with a NaN or an infinity has the scale NaN, and what is computed from it is NaN throughout;
/// its elements mean nothing. x is f32 or bf16 [rows, cols], out e4m3 of the same shape, as `e4m3_matrix`
/// lays one out or a range of its rows; they may not overlap. Throws std::invalid_argument for shapes or
/// types that do not fit.
void quantize_rows(Stream& stream, ConstMatrix x, Matrix out);

}  // namespace vigil::kernels
