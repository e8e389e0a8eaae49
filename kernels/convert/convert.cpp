#include "kernels/convert/convert.h"

#include <stdexcept>

#include "kernels/convert/convert_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {

void convert_rows(Stream& stream, ConstMatrix from, Matrix to) {
  for (const ConstMatrix& matrix : {from, ConstMatrix(to)}) {
    if (matrix.dtype != DType::f32 && matrix.dtype != DType::bf16)
      throw std::invalid_argument("convert_rows: neither f32 nor bf16");
    if (matrix.rows < 0 || matrix.cols < 0 || matrix.stride < matrix.cols)
      throw std::invalid_argument("convert_rows: rows that overlap or have no size");
  }
  if (to.rows != from.rows || to.cols != from.cols)
    throw std::invalid_argument("convert_rows: the result has another shape");
  if (to.rows == 0 || to.cols == 0) return;
  VIGIL_ON_DEVICE(stream, convert_rows(stream, from, to));
}

}  // namespace vigil::kernels
