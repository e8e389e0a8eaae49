// Light is told from things.
#include "engine/prune/light.h"

#include <cmath>

#include <gtest/gtest.h>

#include "tests/engine/prune/scene.h"

namespace vigil::prune {
namespace {

using testing::Canvas;

/// 8 x 8 squares from dark to bright.
LowRes ramp() {
  LowRes picture;
  picture.resize(8, 8);
  for (std::size_t i = 0; i < 64; ++i) {
    picture.channels[0][i] = 40 + 2 * static_cast<float>(i);
    picture.channels[1][i] = i % 2 == 0 ? 20.0F : -10.0F;
    picture.channels[2][i] = 5;
  }
  return picture;
}

LowRes lit(const LowRes& picture, const Light& light) {
  LowRes to = picture;
  for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel)
    for (float& value : to.channels[channel]) value = light.gain * value + light.offset[channel];
  return to;
}

TEST(LightTest, IsFoundThoughAThirdOfThePictureChanged) {
  LowRes before = ramp();
  // Bright ones, which turn a line most.
  for (std::size_t i = 43; i < 64; ++i) before.channels[0][i] = 230;
  for (const Light& light : {Light{1, {}}, Light{0.6F, {10, 4, -6}}, Light{1.5F, {-20, 0, 0}}}) {
    LowRes now = lit(before, light);
    for (std::size_t i = 43; i < 64; ++i) now.channels[0][i] = now.channels[1][i] = now.channels[2][i] = 10;
    const Light found = fit_light(before, now);
    EXPECT_NEAR(found.gain, light.gain, 0.03F);
    for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel)
      EXPECT_NEAR(found.offset[channel], light.offset[channel], 2) << channel;
  }
}

TEST(LightTest, OfAPictureWithoutContrastIsAnOffset) {
  LowRes before;
  before.resize(3, 2);
  for (std::vector<float>& values : before.channels) std::fill(values.begin(), values.end(), 90.0F);
  const Light found = fit_light(before, lit(before, {1, {30, 0, 0}}));
  EXPECT_FLOAT_EQ(found.gain, 1);
  EXPECT_NEAR(found.offset[0], 30, 1e-3F);
  EXPECT_NEAR(distance(found, before), 30, 1e-3F);
}

TEST(LightTest, SmoothIsWhatMostNeighboursShowAndNoMoreThanTheLimit) {
  const LowRes before = ramp();
  LowRes now = before;
  // A shadow of 5 x 5 squares, a thing of 2 x 2 in the corner, and one square within the shadow.
  for (std::size_t y = 0; y < 5; ++y)
    for (std::size_t x = 0; x < 5; ++x) now.channels[0][8 * y + x] -= 6;
  now.channels[0][8 * 2 + 2] += 100;
  for (const std::size_t i : {54U, 55U, 62U, 63U}) now.channels[0][i] += 50;
  LowRes smooth;
  smooth_light(before, now, {}, 10, smooth);
  EXPECT_FLOAT_EQ(smooth.channels[0][8 * 2 + 2], -6) << "within the shadow, whatever is there";
  EXPECT_FLOAT_EQ(smooth.channels[0][8 * 2 + 6], 0);
  EXPECT_FLOAT_EQ(smooth.channels[0][8 * 6 + 6], 0) << "the inner square of the thing: 4 of 9";
  smooth_light(before, now, {}, 4, smooth);
  EXPECT_FLOAT_EQ(smooth.channels[0][8 * 2 + 2], -4);
}

// Beside the definition, square by square.
TEST(LowResTest, IsTheMeanOfEverySquareInThreeChannels) {
  std::mt19937 random(3);
  for (const int edge : {1, 4, 7, 14, 28}) {
    Canvas picture(2, 3);
    for (std::uint8_t& value : picture.rgb) value = static_cast<std::uint8_t>(random());
    LowRes means, shrunk, twice;
    low_res_of(picture.view(), edge, means);
    ASSERT_EQ(means.width, 84U / static_cast<unsigned>(edge));
    ASSERT_EQ(means.height, 56U / static_cast<unsigned>(edge));
    for (int row = 0; row < 56 / edge; ++row)
      for (int column = 0; column < 84 / edge; ++column) {
        double red = 0, green = 0, blue = 0;
        for (int y = row * edge; y < (row + 1) * edge; ++y)
          for (int x = column * edge; x < (column + 1) * edge; ++x) {
            const std::uint8_t* p = picture.rgb.data() + 3 * (84 * y + x);
            red += p[0], green += p[1], blue += p[2];
          }
        const double area = edge * edge;
        const double luma = (0.299 * red + 0.587 * green + 0.114 * blue) / area;
        const auto at = static_cast<std::size_t>(row * (84 / edge) + column);
        EXPECT_NEAR(means.channels[0][at], luma, 1e-3);
        EXPECT_NEAR(means.channels[1][at], red / area - luma, 1e-3);
        EXPECT_NEAR(means.channels[2][at], blue / area - luma, 1e-3);
      }
    if (28 % (2 * edge) != 0) continue;
    shrink(means, 2, shrunk);
    low_res_of(picture.view(), 2 * edge, twice);
    for (std::size_t channel = 0; channel < LowRes::kChannels; ++channel)
      for (std::size_t i = 0; i < twice.channels[channel].size(); ++i)
        EXPECT_NEAR(shrunk.channels[channel][i], twice.channels[channel][i], 1e-3);
  }
}

TEST(LowResTest, SumsOfManyLinesDoNotOverflow) {
  const Canvas white(20, 1, 255);
  LowRes mean;
  low_res_of({white.rgb.data(), 28, 560}, 28, mean);
  EXPECT_FLOAT_EQ(mean.channels[0][0], 255);
  const Canvas large(20, 20, 255);
  low_res_of(large.view(), 560, mean);
  EXPECT_NEAR(mean.channels[0][0], 255, 1e-2F);
}

}  // namespace
}  // namespace vigil::prune
