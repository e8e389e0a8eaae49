#include "kernels/resize/resize.h"

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/resize/resize_reference.h"

namespace vigil::kernels {
namespace {

std::vector<std::uint8_t> noise(int height, int width, int channels, std::uint32_t seed) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(height * width * channels));
  for (std::uint8_t& level : pixels) {
    seed = seed * 1664525U + 1013904223U;
    level = static_cast<std::uint8_t>(seed >> 24U);
  }
  return pixels;
}

struct Sizes {
  int in_height, in_width, out_height, out_width;
};

constexpr Sizes kSizes[] = {{1, 1, 1, 1},     {1, 1, 5, 3},   {5, 3, 1, 1},  {7, 13, 7, 13},
                            {7, 13, 7, 29},   {7, 13, 3, 13}, {8, 8, 17, 5}, {61, 47, 53, 13},
                            {40, 40, 41, 39}, {3, 200, 3, 2}};

TEST(Resize, AgreesWithTheReferenceAtAwkwardSizes) {
  Stream stream = Stream::cpu(2);
  for (const Sizes& size : kSizes)
    for (const int channels : {1, 2, 3, 4})
      for (const ResizeLike like : {ResizeLike::pillow, ResizeLike::torch}) {
        const auto in = noise(size.in_height, size.in_width, channels, 5);
        std::vector<std::uint8_t> out(
            static_cast<std::size_t>(size.out_height * size.out_width * channels) + 1, 77);
        resize_bicubic(stream, in.data(), size.in_height, size.in_width, out.data(), size.out_height,
                       size.out_width, channels, like);
        EXPECT_EQ(out.back(), 77);
        for (int c = 0; c < channels; ++c) {
          const auto exact = reference::resize_bicubic(in.data(), size.in_height, size.in_width,
                                                       size.out_height, size.out_width, channels, c);
          for (std::size_t i = 0; i < exact.size(); ++i)
            // Half a level for the rounding; a value between the axes that falls to the other side of a half
            // counts for up to 1.25.
            ASSERT_NEAR(out[i * static_cast<std::size_t>(channels) + static_cast<std::size_t>(c)], exact[i],
                        1.8)
                << size.in_height << "x" << size.in_width << " to " << size.out_height << "x"
                << size.out_width;
        }
      }
}

TEST(Resize, KeepsAFlatPictureFlat) {
  Stream stream = Stream::cpu(1);
  for (const ResizeLike like : {ResizeLike::pillow, ResizeLike::torch})
    for (const std::uint8_t level :
         {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{128}, std::uint8_t{255}}) {
      const std::vector<std::uint8_t> in(31 * 47 * 3, level);
      std::vector<std::uint8_t> out(56 * 14 * 3);
      resize_bicubic(stream, in.data(), 31, 47, out.data(), 56, 14, 3, like);
      EXPECT_EQ(out, std::vector<std::uint8_t>(out.size(), level));
    }
}

TEST(Resize, DoesNotDependOnThreads) {
  const auto in = noise(200, 300, 3, 9);
  std::vector<std::uint8_t> one(112 * 140 * 3);
  std::vector<std::uint8_t> four(one.size());
  Stream single = Stream::cpu(1);
  Stream several = Stream::cpu(4);
  resize_bicubic(single, in.data(), 200, 300, one.data(), 112, 140, 3, ResizeLike::torch);
  resize_bicubic(several, in.data(), 200, 300, four.data(), 112, 140, 3, ResizeLike::torch);
  EXPECT_EQ(one, four);
}

TEST(Resize, RefusesSizesThatAreNone) {
  Stream stream = Stream::cpu(1);
  std::uint8_t pixel = 0;
  const auto resize = [&](int a, int b, int c, int d, int channels) {
    resize_bicubic(stream, &pixel, a, b, &pixel, c, d, channels, ResizeLike::pillow);
  };
  EXPECT_THROW(resize(0, 1, 1, 1, 1), std::invalid_argument);
  EXPECT_THROW(resize(1, -1, 1, 1, 1), std::invalid_argument);
  EXPECT_THROW(resize(1, 1, 0, 1, 1), std::invalid_argument);
  EXPECT_THROW(resize(1, 1, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW(resize(1, 1, 1, 1, 0), std::invalid_argument);
  EXPECT_THROW(resize(1, 1, 1, 1, 5), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
