#include "kernels/quantize/quantize.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/quantize/quantize_backends.h"

namespace vigil::kernels {

Matrix e4m3_matrix(void* memory, std::int64_t rows, std::int64_t cols) {
  const std::int64_t stride = e4m3_stride(cols);
  auto* scales = reinterpret_cast<float*>(static_cast<std::byte*>(memory) + rows * stride);
  return {memory, DType::e4m3, rows, cols, stride, scales};
}

void quantize_rows(Stream& stream, ConstMatrix x, Matrix out) {
  if (x.dtype != DType::f32 && x.dtype != DType::bf16)
    throw std::invalid_argument("quantize_rows: only f32 and bf16 are rounded to e4m3");
  if (!holds_e4m3(out) || x.rows != out.rows || x.cols != out.cols)
    throw std::invalid_argument("quantize_rows: the output does not fit the input");
  if (x.rows == 0) return;
  VIGIL_ON_DEVICE(stream, quantize_rows(stream, x, out));
}

}  // namespace vigil::kernels
