#include "kernels/device/cpu.h"
#include "kernels/random/random_backends.h"

namespace vigil::kernels {

void cpu::fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part) {
  parallel_blocks(stream, to.rows, 64, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t j = 0; j < to.cols; ++j) {
        const float value =
            scale * random_number(seed, static_cast<std::uint64_t>(part.first + i * part.pitch + j));
        if (to.dtype == DType::f32) {
          to.row<float>(i)[j] = value;
        } else {
          to.row<bf16>(i)[j] = to_bf16(value);
        }
      }
  });
}

}  // namespace vigil::kernels
