#include "kernels/argmax/argmax.h"

#include <stdexcept>

#include "kernels/argmax/argmax_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {

void largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values) {
  if (x.dtype != DType::f32) throw std::invalid_argument("largest_columns: not f32");
  if (x.rows == 0) return;
  VIGIL_ON_DEVICE(stream, largest_columns(stream, x, columns, values));
}

}  // namespace vigil::kernels
