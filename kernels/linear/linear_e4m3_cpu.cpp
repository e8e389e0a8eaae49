// Products of E4M3 on the CPU: the numbers that a GPU computes, not the time that it takes. Elements become
// f32, in which their products are exact, and scales are applied to sums, as there.
#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/device/slow_path.h"
#include "kernels/linear/activation_cpu.h"
#include "kernels/linear/linear_backends.h"
#include "kernels/quantize/quantize_backends.h"

namespace vigil::kernels {
namespace {

/// Rows of weights that are f32 at a time.
constexpr std::int64_t kWeights = 256;

/// Rows of so many columns that are worth waking a thread.
std::int64_t grain_of(std::int64_t cols) {
  return 65536 / std::max<std::int64_t>(cols, 1) + 1;
}

const std::array<float, 256>& numbers() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> values{};
    for (std::size_t code = 0; code < values.size(); ++code)
      values[code] = to_float(e4m3{static_cast<std::uint8_t>(code)});
    return values;
  }();
  return table;
}

/// Elements without their scales.
void to_f32(const Stream& stream, ConstMatrix from, float* to) {
  const std::array<float, 256>& table = numbers();
  parallel_blocks(stream, from.rows, grain_of(from.cols), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const e4m3* row = from.row<e4m3>(i);
      for (std::int64_t j = 0; j < from.cols; ++j) to[i * from.cols + j] = table[row[j].bits];
    }
  });
}

float read(ConstMatrix matrix, std::int64_t i, std::int64_t j) {
  return matrix.dtype == DType::f32 ? matrix.row<float>(i)[j] : to_float(matrix.row<bf16>(i)[j]);
}

}  // namespace

void cpu::linear_e4m3(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out,
                      const LinearOptions& options) {
  static SlowPath slow{"linear", "the CPU has no products of e4m3: computed in f32"};
  slow.taken();
  std::vector<std::byte> rounded;
  if (x.dtype != DType::e4m3) {
    rounded.resize(e4m3_bytes(x.rows, x.cols) + 16);
    const auto address = reinterpret_cast<std::uintptr_t>(rounded.data());
    const Matrix quantized = e4m3_matrix(rounded.data() + (16 - address % 16) % 16, x.rows, x.cols);
    cpu::quantize_rows(stream, x, quantized);
    x = quantized;
  }
  const std::int64_t block = std::min(kWeights, w.rows);
  std::vector<float> left(static_cast<std::size_t>(x.rows * x.cols)),
      right(static_cast<std::size_t>(block * w.cols)), sums(static_cast<std::size_t>(x.rows * block));
  to_f32(stream, x, left.data());
  for (std::int64_t first = 0; first < w.rows; first += block) {
    const std::int64_t count = std::min(block, w.rows - first);
    to_f32(stream, w.rows_from(first, count), right.data());
    const Matrix product = dense(sums.data(), DType::f32, x.rows, count);
    if (x.cols > 0) {
      cpu::linear(stream, dense(left.data(), DType::f32, x.rows, x.cols),
                  dense(right.data(), DType::f32, count, w.cols), product, {});
    }
    parallel_blocks(stream, x.rows, grain_of(count), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        for (std::int64_t j = 0; j < count; ++j) {
          const std::int64_t col = first + j;
          float value = product.row<float>(i)[j] * x.scales[i] * w.scales[col];
          if (options.bias.values != nullptr) value += options.bias.values[col];
          value = activate(value, options.activation);
          if (options.multiply.data != nullptr) value *= read(options.multiply, i, col);
          if (options.accumulate) value += read(out, i, col);
          if (out.dtype == DType::f32) {
            out.row<float>(i)[col] = value;
          } else {
            out.row<bf16>(i)[col] = to_bf16(value);
          }
        }
    });
  }
}

bool cpu::has_e4m3_products(Stream& /*stream*/) {
  return true;
}

}  // namespace vigil::kernels
