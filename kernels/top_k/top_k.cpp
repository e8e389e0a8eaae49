#include "kernels/top_k/top_k.h"

#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/top_k/top_k_backends.h"

namespace vigil::kernels {

void top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values) {
  if (x.dtype != DType::f32) throw std::invalid_argument("top_k: not f32");
  if (count < 1 || count > kMostTopK)
    throw std::invalid_argument("top_k: " + std::to_string(count) + " is not between 1 and " +
                                std::to_string(kMostTopK));
  if (x.rows == 0) return;
  VIGIL_ON_DEVICE(stream, top_k(stream, x, count, columns, values));
}

}  // namespace vigil::kernels
