// Single elements of a matrix as numbers: for references and tests, where clarity goes before speed.
#pragma once

#include <cstdint>
#include <stdexcept>

#include "kernels/device/matrix.h"

namespace vigil::kernels {

/// Element (i, j) of an f32, bf16, f16 or e4m3 matrix, of the last with its row's scale. Throws
/// std::invalid_argument for another type.
inline float element(ConstMatrix matrix, std::int64_t i, std::int64_t j) {
  switch (matrix.dtype) {
    case DType::f32:
      return matrix.row<float>(i)[j];
    case DType::bf16:
      return to_float(matrix.row<bf16>(i)[j]);
    case DType::f16:
      return to_float(matrix.row<f16>(i)[j]);
    case DType::e4m3:
      return to_float(matrix.row<e4m3>(i)[j]) * matrix.scales[i];
    default:
      throw std::invalid_argument("no number is read from this type");
  }
}

}  // namespace vigil::kernels
