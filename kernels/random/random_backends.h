// The implementations behind random.h, which has checked what they are given.
#pragma once

#include "kernels/random/random.h"

namespace vigil::kernels {
namespace cpu {
void fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part);
}
namespace cuda {
void fill_random(Stream& stream, Matrix to, std::uint64_t seed, float scale, RandomPart part);
}
}  // namespace vigil::kernels
