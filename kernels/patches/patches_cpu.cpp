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

/// All patches of one row of squares (merge_size patch rows).
template <typename T>
void cut_squares(std::span<const std::uint8_t* const> frames, const Layout& layout, std::int64_t square_row,
                 const TableOf<T>& table, Matrix out) {
  const int p = layout.patch_size;
  const int m = layout.merge_size;
  std::int64_t row = square_row * layout.squares_across * m * m;
  for (int square = 0; square < layout.squares_across; ++square)
    for (int dy = 0; dy < m; ++dy)
      for (int dx = 0; dx < m; ++dx, ++row) {
        const std::int64_t corner =
            (square_row * m + dy) * p * layout.width_bytes + (std::int64_t{square} * m + dx) * p * 3;
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
         std::int64_t square_rows, const TableOf<T>& table, Matrix out) {
  const auto one_row = [&](std::int64_t square_row) {
    cut_squares<T>(frames, layout, square_row, table, out);
  };
  // One core writes 2 values a nanosecond: below a millisecond or two, waking others costs more than
  // they give.
  constexpr std::int64_t kWorthThreads = std::int64_t{1} << 22U;
  if (out.rows * out.cols >= kWorthThreads) {
    parallel_for(stream, square_rows, one_row);
  } else {
    for (std::int64_t square_row = 0; square_row < square_rows; ++square_row) one_row(square_row);
  }
}

}  // namespace

void cpu::cut_patches(Stream& stream, std::span<const std::uint8_t* const> frames, int height, int width,
                      int patch_size, int merge_size, const LevelTable& table, Matrix out) {
  const int square = patch_size * merge_size;
  const Layout layout{std::int64_t{width} * 3, patch_size, merge_size, width / square};
  if (out.dtype == DType::f32) {
    cut<float>(stream, frames, layout, height / square, table, out);
  } else {
    TableOf<bf16> rounded;
    for (std::size_t c = 0; c < 3; ++c)
      for (std::size_t level = 0; level < 256; ++level) rounded[c][level] = to_bf16(table[c][level]);
    cut<bf16>(stream, frames, layout, height / square, rounded, out);
  }
}

}  // namespace vigil::kernels
