#include <cstring>

#include "kernels/convert/convert_backends.h"
#include "kernels/device/cpu.h"

namespace vigil::kernels {
namespace {

VIGIL_SIMD void round_rows(ConstMatrix from, Matrix to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const float* source = from.row<float>(i);
    bf16* target = to.row<bf16>(i);
#pragma omp simd
    for (std::int64_t j = 0; j < to.cols; ++j) target[j] = to_bf16(source[j]);
  }
}

VIGIL_SIMD void widen_rows(ConstMatrix from, Matrix to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const bf16* source = from.row<bf16>(i);
    float* target = to.row<float>(i);
#pragma omp simd
    for (std::int64_t j = 0; j < to.cols; ++j) target[j] = to_float(source[j]);
  }
}

void copy_rows(ConstMatrix from, Matrix to, std::int64_t begin, std::int64_t end) {
  const std::size_t width = size_of(to.dtype);
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(static_cast<std::byte*>(to.data) + static_cast<std::size_t>(i * to.stride) * width,
                static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(i * from.stride) * width,
                static_cast<std::size_t>(to.cols) * width);
}

}  // namespace

void cpu::convert_rows(Stream& stream, ConstMatrix from, Matrix to) {
  parallel_blocks(stream, to.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == from.dtype) {
      copy_rows(from, to, begin, end);
    } else if (to.dtype == DType::bf16) {
      round_rows(from, to, begin, end);
    } else {
      widen_rows(from, to, begin, end);
    }
  });
}

}  // namespace vigil::kernels
