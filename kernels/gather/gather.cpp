#include "kernels/gather/gather.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/gather/gather_backends.h"

namespace vigil::kernels {

void gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  if (from.dtype != DType::f32 && from.dtype != DType::bf16 && from.dtype != DType::f16)
    throw std::invalid_argument("gather_rows: no numbers of this type");
  if ((to.dtype != DType::f32 && to.dtype != from.dtype) || to.cols != from.cols)
    throw std::invalid_argument("gather_rows: the result has another shape or type");
  if (to.rows == 0 || to.cols == 0) return;
  VIGIL_ON_DEVICE(stream, gather_rows(stream, from, rows, to));
}

void scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  if (from.dtype != DType::f32 && from.dtype != DType::bf16)
    throw std::invalid_argument("scatter_rows: neither f32 nor bf16");
  if (to.dtype != from.dtype || to.cols != from.cols)
    throw std::invalid_argument("scatter_rows: the result has another width or type");
  if (from.rows == 0 || to.cols == 0) return;
  VIGIL_ON_DEVICE(stream, scatter_rows(stream, from, rows, to));
}

}  // namespace vigil::kernels
