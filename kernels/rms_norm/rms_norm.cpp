#include "kernels/rms_norm/rms_norm.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm_backends.h"

namespace vigil::kernels {

void rms_norm(Stream& stream, ConstMatrix x, const float* weight, float epsilon, Matrix out) {
  if (x.dtype != DType::f32 || (out.dtype != DType::f32 && out.dtype != DType::bf16 && !holds_e4m3(out)) ||
      x.rows != out.rows || x.cols != out.cols)
    throw std::invalid_argument("rms_norm: the output does not fit the input");
  if (x.rows == 0 || x.cols == 0) return;
  VIGIL_ON_DEVICE(stream, rms_norm(stream, x, weight, epsilon, out));
}

}  // namespace vigil::kernels
