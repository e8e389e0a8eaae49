#include "kernels/rope/rope.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/rope/rope_backends.h"

namespace vigil::kernels {

void rope(Stream& stream, Matrix x, std::int64_t head_dim, const float* cos, const float* sin) {
  if ((x.dtype != DType::f32 && x.dtype != DType::bf16) || head_dim <= 0 || head_dim % 2 != 0 ||
      x.cols % head_dim != 0)
    throw std::invalid_argument("rope: rows are no whole number of heads of an even width");
  if (x.rows == 0 || x.cols == 0) return;
  VIGIL_ON_DEVICE(stream, rope(stream, x, head_dim, cos, sin));
}

void rope_angles(Stream& stream, const RopePosition* positions, std::int64_t rows,
                 const RopeFrequency* frequencies, std::int64_t pairs, RopeAngles precision, float* cos,
                 float* sin) {
  if (rows < 0 || pairs < 0) throw std::invalid_argument("rope: a negative number of angles");
  if (rows == 0 || pairs == 0) return;
  VIGIL_ON_DEVICE(stream, rope_angles(stream, positions, rows, frequencies, pairs, precision, cos, sin));
}

}  // namespace vigil::kernels
