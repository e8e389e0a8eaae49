#include "kernels/patches/patches.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

struct Shape {
  int height, width, patch_size, merge_size, frames;
};

constexpr Shape kShapes[] = {{28, 28, 14, 2, 2}, {84, 56, 14, 2, 1}, {36, 72, 12, 3, 2},
                             {5, 10, 5, 1, 3},   {2, 2, 1, 2, 2},    {700, 1036, 14, 2, 2}};

LevelTable table() {
  LevelTable levels{};
  for (std::size_t c = 0; c < 3; ++c)
    for (std::size_t level = 0; level < 256; ++level)
      levels[c][level] = (static_cast<float>(level) - 100.3F * static_cast<float>(c + 1)) / 7.1F;
  return levels;
}

class PatchesTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, PatchesTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

/// Every pixel is looked for where the formula of the header puts it.
TEST_P(PatchesTest, PutsEveryPixelInItsPlace) {
  const LevelTable levels = table();
  for (const Shape& shape : kShapes) {
    const auto [height, width, p, m, count] = shape;
    std::vector<std::vector<std::uint8_t>> pictures;
    std::vector<const std::uint8_t*> frames;
    std::uint32_t seed = 3;
    for (int t = 0; t < count; ++t) {
      pictures.emplace_back(static_cast<std::size_t>(height * width * 3));
      for (std::uint8_t& level : pictures.back()) {
        seed = seed * 1664525U + 1013904223U;
        level = static_cast<std::uint8_t>(seed >> 24U);
      }
    }
    Stream stream = test_stream(2);
    std::vector<DeviceArray<std::uint8_t>> there;
    for (const auto& picture : pictures) {
      there.emplace_back(stream, picture);
      frames.push_back(there.back().data());
    }

    const std::int64_t rows = std::int64_t{height / p} * (width / p);
    const std::int64_t columns = std::int64_t{3} * count * p * p;
    const std::int64_t stride = columns + 5;
    std::vector<std::uint8_t> memory(static_cast<std::size_t>(rows * stride) * size_of(GetParam()), 0xAB);
    Mirror mirror(stream, std::as_writable_bytes(std::span(memory)));
    cut_patches(stream, frames, height, width, p, m, levels,
                Matrix{mirror.data(), GetParam(), rows, columns, stride});
    mirror.fetch();
    const ConstMatrix out{memory.data(), GetParam(), rows, columns, stride};
    for (int t = 0; t < count; ++t)
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          for (int c = 0; c < 3; ++c) {
            const int patch_row = y / p;
            const int patch_column = x / p;
            const std::int64_t row =
                ((std::int64_t{patch_row / m} * (width / p / m) + patch_column / m) * m + patch_row % m) * m +
                patch_column % m;
            const std::int64_t column = ((std::int64_t{c} * count + t) * p + y % p) * p + x % p;
            const std::uint8_t level =
                pictures[static_cast<std::size_t>(t)][static_cast<std::size_t>((y * width + x) * 3 + c)];
            const float expected = levels[static_cast<std::size_t>(c)][level];
            if (GetParam() == DType::f32) {
              ASSERT_EQ(out.row<float>(row)[column], expected);
            } else {
              ASSERT_EQ(out.row<bf16>(row)[column].bits, to_bf16(expected).bits);
            }
          }
    // Nothing is written between the rows.
    for (std::int64_t row = 0; row < rows; ++row)
      EXPECT_EQ(memory[static_cast<std::size_t>(row * stride + columns) * size_of(GetParam())], 0xAB);
  }
}

TEST_P(PatchesTest, CutsTheSquaresThatAreWantedAlone) {
  const LevelTable levels = table();
  for (const Shape& shape : kShapes) {
    const auto [height, width, p, m, count] = shape;
    Stream stream = test_stream(2);
    std::vector<std::uint8_t> picture(static_cast<std::size_t>(height * width * 3));
    std::uint32_t seed = 9;
    for (std::uint8_t& level : picture)
      level = static_cast<std::uint8_t>((seed = seed * 1664525U + 7) >> 24U);
    const DeviceArray<std::uint8_t> there(stream, picture);
    const std::vector<const std::uint8_t*> frames(static_cast<std::size_t>(count), there.data());
    const std::int64_t patches = std::int64_t{m} * m;
    const std::int64_t squares = std::int64_t{height / p} * (width / p) / patches;
    const std::int64_t columns = std::int64_t{3} * count * p * p;
    const auto row_bytes = static_cast<std::size_t>(columns) * size_of(GetParam());
    const auto cut = [&](std::int64_t rows, const std::int32_t* wanted) {
      std::vector<std::byte> memory(static_cast<std::size_t>(rows) * row_bytes);
      Mirror mirror(stream, memory);
      cut_patches(stream, frames, height, width, p, m, levels,
                  dense(mirror.data(), GetParam(), rows, columns), wanted);
      mirror.fetch();
      return memory;
    };
    const std::vector<std::byte> all = cut(squares * patches, nullptr);
    for (const std::int64_t every : {1, 2, 5, 1000}) {
      std::vector<std::int32_t> wanted;
      for (std::int64_t square = every / 2; square < squares; square += every)
        wanted.push_back(static_cast<std::int32_t>(square));
      if (wanted.empty()) continue;
      const DeviceArray<std::int32_t> list(stream, wanted);
      const auto rows = static_cast<std::int64_t>(wanted.size()) * patches;
      const std::vector<std::byte> some = cut(rows, list.data());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const std::size_t bytes = static_cast<std::size_t>(patches) * row_bytes;
        ASSERT_TRUE(std::equal(
            some.begin() + static_cast<std::ptrdiff_t>(i * bytes),
            some.begin() + static_cast<std::ptrdiff_t>((i + 1) * bytes),
            all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(wanted[i]) * bytes)))
            << height << " x " << width << ", square " << wanted[i];
      }
    }
  }
}

TEST(Patches, RefusesWhatDoesNotFit) {
  const LevelTable levels = table();
  Stream stream = Stream::cpu(1);
  const std::vector<std::uint8_t> picture(28 * 28 * 3);
  const std::vector<const std::uint8_t*> frames = {picture.data()};
  std::vector<float> out(4 * 588);
  const auto cut = [&](int height, int width, Matrix to) {
    cut_patches(stream, frames, height, width, 14, 2, levels, to);
  };
  EXPECT_NO_THROW(cut(28, 28, dense(out.data(), DType::f32, 4, 588)));
  EXPECT_THROW(cut(14, 28, dense(out.data(), DType::f32, 2, 588)), std::invalid_argument);
  EXPECT_THROW(cut(28, 28, dense(out.data(), DType::f32, 4, 587)), std::invalid_argument);
  EXPECT_THROW(cut(28, 28, dense(out.data(), DType::f32, 3, 588)), std::invalid_argument);
  EXPECT_THROW(cut(28, 28, dense(out.data(), DType::i32, 4, 588)), std::invalid_argument);
  EXPECT_THROW(cut(0, 28, dense(out.data(), DType::f32, 0, 588)), std::invalid_argument);
  const std::vector<std::int32_t> squares{0, 0};
  const auto some = [&](std::int64_t rows) {
    cut_patches(stream, frames, 28, 28, 14, 2, levels, dense(out.data(), DType::f32, rows, 588),
                squares.data());
  };
  EXPECT_NO_THROW(some(4));
  EXPECT_NO_THROW(some(0));
  EXPECT_THROW(some(2), std::invalid_argument) << "no whole square";
  EXPECT_THROW(some(8), std::invalid_argument) << "more than there are";
  EXPECT_THROW(cut_patches(stream, {}, 28, 28, 14, 2, levels, dense(out.data(), DType::f32, 4, 0)),
               std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
