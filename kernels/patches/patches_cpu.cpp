#include <algorithm>

#include "kernels/device/cpu.h"
#include "kernels/patches/patches_backends.h"

namespace vigil::kernels {
namespace {

template <typename T>
using TableOf = std::array<std::array<T, 256>, 3>;

struct Layout {
  std::int64_t width_bytes;
  int patch_size;
  int merge_size;
  int squares_across;
};

/// The patches of one square, from this row on.
template <typename T>
void cut_square(std::span<const std::uint8_t* const> frames, const Layout& layout, std::int64_t square,
                const TableOf<T>& table, Matrix out, std::int64_t row) {
  const int p = layout.patch_size;
  const int m = layout.merge_size;
  const std::int64_t top = square / layout.squares_across * m;
  const std::int64_t left = square % layout.squares_across * m;
  for (int dy = 0; dy < m; ++dy)
    for (int dx = 0; dx < m; ++dx, ++row) {
      const std::int64_t corner = (top + dy) * p * layout.width_bytes + (left + dx) * p * 3;
      T* to = out.row<T>(row);
      for (std::size_t c = 0; c < 3; ++c)
        for (const std::uint8_t* frame : frames)
          for (int y = 0; y < p; ++y) {
            const std::uint8_t* from = frame + corner + y * layout.width_bytes + c;
            for (int x = 0; x < p; ++x) *to++ = table[c][from[std::ptrdiff_t{3} * x]];
          }
    }
}

template <typename T>
void cut(const Stream& stream, std::span<const std::uint8_t* const> frames, const Layout& layout,
         const TableOf<T>& table, const std::int32_t* squares, Matrix out) {
  const std::int64_t patches = std::int64_t{layout.merge_size} * layout.merge_size;
  const std::int64_t count = out.rows / patches;
  const std::int64_t across = layout.squares_across;
  // As many squares at a time as a row of the picture has.
  const auto one_row = [&](std::int64_t row) {
    for (std::int64_t i = row * across; i < std::min((row + 1) * across, count); ++i)
      cut_square<T>(frames, layout, squares == nullptr ? i : squares[i], table, out, i * patches);
  };
  // One core writes 2 values a nanosecond: below a millisecond or two, waking others costs more than
  // they give.
  constexpr std::int64_t kWorthThreads = std::int64_t{1} << 22U;
  const std::int64_t rows = (count + across - 1) / across;
  if (out.rows * out.cols >= kWorthThreads) {
    parallel_for(stream, rows, one_row);
  } else {
    for (std::int64_t row = 0; row < rows; ++row) one_row(row);
  }
}

}  // namespace

void cpu::cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int /*height*/, int width,
                      int patch_size, int merge_size, const LevelTable& table, Matrix out,
                      const std::int32_t* squares) {
  const int square = patch_size * merge_size;
  const Layout layout{std::int64_t{width} * 3, patch_size, merge_size, width / square};
  if (out.dtype == DType::f32) {
    cut<float>(stream, frames, layout, table, squares, out);
  } else {
    TableOf<bf16> rounded;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t level = 0; level < 256; ++level) rounded[c][level] = to_bf16(table[c][level]);
    cut<bf16>(stream, frames, layout, rounded, squares, out);
  }
}

}  // namespace vigil::kernels
