// What packed keys and values hold, read from the page's words in double precision, element by element.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/packed_kv/packed_kv.h"

namespace vigil::kernels::reference {

/// One element, and by how much the number that was packed may differ from it.
struct Unpacked {
  double value;
  double off;
};

inline Unpacked unpacked(const std::byte* packed, const PackedShape& shape, std::int64_t layer, bool value,
                         std::int64_t head, std::int64_t token, std::int64_t column) {
  const auto up = [](std::int64_t bytes) { return bytes + (16 - bytes % 16) % 16; };
  const std::int64_t width = shape.head_dim;
  // Parts of a block, and what all blocks of a head take.
  const auto before = [&](std::int64_t n) {
    return shape.form == PackedForm::int4 ? up(4 * width) : shape.form == PackedForm::fp8 ? up(2 * n) : 0;
  };
  const auto elements = [&](std::int64_t n) {
    return up(shape.form == PackedForm::int4  ? n * width / 2
              : shape.form == PackedForm::fp8 ? n * width
                                              : n * width * 2);
  };
  std::int64_t segment = 0, block = 0;
  for (std::int64_t first = 0; first < shape.tokens; first += 64) {
    if (first == token / 64 * 64) block = segment;
    const std::int64_t n = std::min<std::int64_t>(64, shape.tokens - first);
    segment += before(n) + elements(n);
  }
  const std::int64_t n = std::min<std::int64_t>(64, shape.tokens - token / 64 * 64);
  const std::byte* at = packed + ((layer * 2 + (value ? 1 : 0)) * shape.kv_heads + head) * segment + block;
  const std::byte* rows = at + before(n);
  const std::int64_t element = token % 64 * width + column;
  const auto bf16_at = [](const std::byte* from, std::int64_t i) {
    const auto low = std::to_integer<unsigned>(from[2 * i]),
               high = std::to_integer<unsigned>(from[2 * i + 1]);
    return double{to_float(kernels::bf16{static_cast<std::uint16_t>(low | high << 8U)})};
  };
  if (shape.form == PackedForm::bf16) return {bf16_at(rows, element), 0};
  if (shape.form == PackedForm::fp8) {
    const double scale = bf16_at(at, token % 64);
    const double found = scale * double{to_float(e4m3{std::to_integer<std::uint8_t>(rows[element])})};
    return {found, std::fmax(std::abs(found) / 15.9, scale / 1023)};
  }
  const auto both = std::to_integer<unsigned>(rows[element / 2]);
  const unsigned code = element % 2 == 0 ? both % 16 : both / 16;
  const double base = bf16_at(at, column), step = bf16_at(at, width + column);
  if (std::signbit(step) && code == 15) return {std::numeric_limits<double>::quiet_NaN(), 0};
  return {base + code * std::abs(step), std::fmax(std::abs(step) * 0.5001, 0x1p-122)};
}

}  // namespace vigil::kernels::reference
