#include "kernels/random/random.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/random/random_backends.h"

namespace vigil::kernels {

void fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part) {
  if (to.dtype != DType::f32 && to.dtype != DType::bf16)
    throw std::invalid_argument("fill_random: no numbers of this type");
  if (to.rows == 0 || to.cols == 0) return;
  if (part.pitch == 0) part.pitch = to.cols;
  VIGIL_ON_DEVICE(stream, fill_random(stream, to, seed, scale, part));
}

}  // namespace vigil::kernels
