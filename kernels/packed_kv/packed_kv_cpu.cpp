#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/packed_kv/packed_codes.h"
#include "kernels/packed_kv/packed_kv_backends.h"

namespace vigil::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Of each column of a block, while it is written.
struct Columns {
  std::vector<float> least, most, inverse, shift;
  std::vector<std::uint32_t> odd;
  std::vector<std::uint8_t> codes;

  explicit Columns(std::size_t width)
      : least(width, kInfinity),
        most(width, -kInfinity),
        inverse(width),
        shift(width),
        odd(width),
        codes(width) {}
};

// The functions below are compiled once an instruction set: they take pointers and counts, and do one row.

VIGIL_SIMD void see_row(const std::uint16_t* row, std::int64_t width, float* least, float* most,
                        std::uint32_t* odd) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) {
    const bool finite = packed::is_finite(row[j]);
    const float value = packed::number(row[j]);
    const float low = finite ? value : kInfinity;
    const float high = finite ? value : -kInfinity;
    least[j] = low < least[j] ? low : least[j];
    most[j] = high > most[j] ? high : most[j];
    odd[j] |= finite ? 0U : 1U;
  }
}

VIGIL_SIMD void int4_codes(const std::uint16_t* row, std::int64_t width, const float* inverse,
                           const float* shift, std::uint8_t* codes) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j)
    codes[j] = static_cast<std::uint8_t>(packed::int4_code(row[j], inverse[j], shift[j]));
}

VIGIL_SIMD void int4_pairs(const std::uint8_t* codes, std::int64_t pairs, std::uint8_t* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < pairs; ++j)
    to[j] = static_cast<std::uint8_t>(codes[2 * j] | codes[2 * j + 1] << 4U);
}

VIGIL_SIMD float most_finite(const std::uint16_t* row, std::int64_t width) {
  std::uint32_t most = 0;
#pragma omp simd reduction(max : most)
  for (std::int64_t j = 0; j < width; ++j) {
    const std::uint32_t magnitude = packed::is_finite(row[j]) ? row[j] & 0x7fffU : 0U;
    most = magnitude > most ? magnitude : most;
  }
  return packed::number(static_cast<std::uint16_t>(most));
}

VIGIL_SIMD void fp8_codes(const std::uint16_t* row, std::int64_t width, float inverse, std::uint8_t* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = packed::fp8_code(row[j], inverse);
}

VIGIL_SIMD void bf16_values(const std::uint16_t* row, std::int64_t width, float* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = packed::number(row[j]);
}

/// Numbers of all codes: a look is quicker than what makes them.
constexpr std::array<float, 256> kE4m3 = [] {
  std::array<float, 256> numbers{};
  for (std::size_t code = 0; code < numbers.size(); ++code)
    numbers[code] = to_float(e4m3{static_cast<std::uint8_t>(code)});
  return numbers;
}();

VIGIL_SIMD void fp8_values(const std::uint8_t* row, std::int64_t width, std::uint16_t scale, float* to) {
  const float factor = packed::number(scale);
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = kE4m3[row[j]] * factor;
}

VIGIL_SIMD void int4_values(const std::uint8_t* row, std::int64_t width, const std::uint16_t* base,
                            const std::uint16_t* step, std::uint8_t* codes, float* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < width / 2; ++j) {
    codes[2 * j] = row[j] & 15U;
    codes[2 * j + 1] = row[j] >> 4U;
  }
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = packed::int4_value(codes[j], base[j], step[j]);
}

VIGIL_SIMD void turn(float* low, std::int64_t half, const float* cos, const float* sin) {
  float* high = low + half;
#pragma omp simd
  for (std::int64_t j = 0; j < half; ++j) {
    const float a = low[j];
    const float b = high[j];
    // Not a zero of another sign.
    const bool stays = sin[j] == 0 && cos[j] == 1;
    low[j] = stays ? a : a * cos[j] - b * sin[j];
    high[j] = stays ? b : b * cos[j] + a * sin[j];
  }
}

VIGIL_SIMD void keep(const float* row, std::int64_t width, std::uint16_t* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = packed::kept(row[j]);
}

VIGIL_SIMD void round_row(const float* row, std::int64_t width, bf16* to) {
#pragma omp simd
  for (std::int64_t j = 0; j < width; ++j) to[j] = to_bf16(row[j]);
}

std::uint16_t* halves(std::byte* at) {
  return reinterpret_cast<std::uint16_t*>(at);
}
std::uint8_t* bytes(std::byte* at) {
  return reinterpret_cast<std::uint8_t*>(at);
}

/// The rows of a block, bf16 [tokens, head_dim], as the form has them.
void write_block(const std::vector<std::uint16_t>& rows, std::int64_t tokens, const PackedShape& shape,
                 std::byte* to) {
  const std::int64_t width = shape.head_dim;
  const std::int64_t head = shape.head_bytes(tokens);
  std::byte* elements = to + head;
  const auto row = [&](std::int64_t i) { return rows.data() + i * width; };
  const auto clear = [](std::byte* begin, std::byte* end) { std::fill(begin, end, std::byte{0}); };
  clear(elements + tokens * shape.row_bytes(), to + shape.block_bytes(tokens));
  if (shape.form == PackedForm::bf16) {
    std::memcpy(elements, rows.data(), static_cast<std::size_t>(tokens * shape.row_bytes()));
  } else if (shape.form == PackedForm::fp8) {
    clear(to + 2 * tokens, elements);
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::uint16_t scale = packed::fp8_scale(most_finite(row(i), width));
      halves(to)[i] = scale;
      fp8_codes(row(i), width, 1.0F / packed::number(scale), bytes(elements) + i * width);
    }
  } else {
    Columns columns(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < tokens; ++i)
      see_row(row(i), width, columns.least.data(), columns.most.data(), columns.odd.data());
    for (std::size_t j = 0; j < columns.odd.size(); ++j) {
      const packed::Int4Column column =
          packed::int4_column(columns.least[j], columns.most[j], columns.odd[j] != 0);
      halves(to)[j] = column.base;
      halves(to)[columns.odd.size() + j] = column.step;
      columns.inverse[j] = column.inverse;
      columns.shift[j] = column.shift;
    }
    clear(to + 4 * width, elements);
    for (std::int64_t i = 0; i < tokens; ++i) {
      int4_codes(row(i), width, columns.inverse.data(), columns.shift.data(), columns.codes.data());
      int4_pairs(columns.codes.data(), width / 2, bytes(elements) + i * (width / 2));
    }
  }
}

/// Row i of a block of so many tokens.
void read_row(const std::byte* block, std::int64_t tokens, std::int64_t i, const PackedShape& shape,
              std::vector<std::uint8_t>& room, std::vector<float>& to) {
  const std::int64_t width = shape.head_dim;
  const auto* scales = reinterpret_cast<const std::uint16_t*>(block);
  const std::byte* row = block + shape.head_bytes(tokens) + i * shape.row_bytes();
  const auto* codes = reinterpret_cast<const std::uint8_t*>(row);
  if (shape.form == PackedForm::bf16) {
    bf16_values(reinterpret_cast<const std::uint16_t*>(row), width, to.data());
  } else if (shape.form == PackedForm::fp8) {
    fp8_values(codes, width, scales[i], to.data());
  } else {
    int4_values(codes, width, scales, scales + width, room.data(), to.data());
  }
}

std::byte* element_of(const KvLayers& cache, std::int64_t layer, bool value, std::int64_t head,
                      std::int32_t slot) {
  const std::int64_t at =
      layer * cache.stride + (value ? cache.first.value_offset : 0) + cache.first.offset(slot, head);
  return static_cast<std::byte*>(cache.first.base) +
         at * static_cast<std::int64_t>(size_of(cache.first.dtype));
}

}  // namespace

void cpu::pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
                  std::int64_t layer, std::int64_t head, std::byte* to) {
  const std::int64_t heads = from.first.kv_heads, blocks = shape.blocks();
  const std::int64_t width = shape.head_dim;
  parallel_for(stream, from.count * 2 * heads * blocks, [&](std::int64_t task) {
    const std::int64_t block = task % blocks, h = task / blocks % heads, l = task / blocks / heads / 2;
    const bool value = task / blocks / heads % 2 != 0;
    const std::int64_t tokens = shape.tokens_of_block(block);
    std::vector<std::uint16_t> rows(static_cast<std::size_t>(tokens * width));
    for (std::int64_t i = 0; i < tokens; ++i) {
      const std::int32_t slot = slots.slots[l * slots.stride + block * kPackedBlock + i];
      const std::byte* row = element_of(from, l, value, h, slot);
      if (from.first.dtype == DType::f32) {
        keep(reinterpret_cast<const float*>(row), width, rows.data() + i * width);
      } else {
        std::memcpy(rows.data() + i * width, row, static_cast<std::size_t>(2 * width));
      }
    }
    write_block(rows, tokens, shape, to + shape.offset(layer + l, value, head + h, block));
  });
}

void cpu::unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
                    const float* cos, const float* sin, KvSlots slots, const KvLayers& to) {
  const std::int64_t heads = to.first.kv_heads, width = shape.head_dim;
  constexpr std::int64_t kGrain = 64;
  parallel_blocks(stream, to.count * part.count, kGrain, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> row(static_cast<std::size_t>(width));
    std::vector<std::uint8_t> room(row.size());
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t l = task / part.count, i = task % part.count;
      const std::int64_t block = (part.token + i) / kPackedBlock;
      const std::int32_t slot = slots.slots[l * slots.stride + i];
      for (const bool value : {false, true})
        for (std::int64_t h = 0; h < heads; ++h) {
          read_row(from + shape.offset(part.layer + l, value, part.head + h, block),
                   shape.tokens_of_block(block), (part.token + i) % kPackedBlock, shape, room, row);
          if (!value && cos != nullptr)
            turn(row.data(), width / 2, cos + i * (width / 2), sin + i * (width / 2));
          std::byte* place = element_of(to, l, value, h, slot);
          if (to.first.dtype == DType::f32) {
            std::copy(row.begin(), row.end(), reinterpret_cast<float*>(place));
          } else {
            round_row(row.data(), width, reinterpret_cast<bf16*>(place));
          }
        }
    }
  });
}

}  // namespace vigil::kernels
