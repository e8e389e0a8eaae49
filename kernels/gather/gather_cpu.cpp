#include <cstring>

#include "kernels/device/cpu.h"
#include "kernels/gather/gather_backends.h"

namespace vigil::kernels {
namespace {

template <typename From>
void widen(ConstMatrix from, const std::int32_t* rows, Matrix to, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) {
    const From* source = from.row<From>(rows[i]);
    float* target = to.row<float>(i);
    for (std::int64_t j = 0; j < to.cols; ++j) target[j] = to_float(source[j]);
  }
}

void move(ConstMatrix from, const std::int32_t* rows, Matrix to, std::int64_t begin, std::int64_t end) {
  const std::size_t width = size_of(from.dtype);
  for (std::int64_t i = begin; i < end; ++i)
    std::memcpy(
        static_cast<std::byte*>(to.data) + static_cast<std::size_t>(i * to.stride) * width,
        static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(rows[i] * from.stride) * width,
        static_cast<std::size_t>(to.cols) * width);
}

}  // namespace

void cpu::gather_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  parallel_blocks(stream, to.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == from.dtype) {
      move(from, rows, to, begin, end);
    } else if (from.dtype == DType::bf16) {
      widen<bf16>(from, rows, to, begin, end);
    } else {
      widen<f16>(from, rows, to, begin, end);
    }
  });
}

void cpu::scatter_rows(Stream& stream, ConstMatrix from, const std::int32_t* rows, Matrix to) {
  const std::size_t width = size_of(from.dtype);
  parallel_blocks(stream, from.rows, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      std::memcpy(
          static_cast<std::byte*>(to.data) + static_cast<std::size_t>(rows[i] * to.stride) * width,
          static_cast<const std::byte*>(from.data) + static_cast<std::size_t>(i * from.stride) * width,
          static_cast<std::size_t>(from.cols) * width);
  });
}

}  // namespace vigil::kernels
