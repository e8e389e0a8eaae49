#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/softmax_cpu.h"
#include "tests/kernels/test_matrix.h"

namespace vigil::kernels {
namespace {

constexpr float kNothing = -std::numeric_limits<float>::infinity();

std::vector<float> scores_of(std::size_t count, Random& random, float scale) {
  std::vector<float> scores(count);
  for (float& score : scores) score = scale * random.number();
  return scores;
}

TEST(SoftmaxTest, WeightsAreExponentialsOfDifferences) {
  Random random(1);
  for (const std::size_t count : {1U, 2U, 15U, 16U, 17U, 64U, 509U, 512U}) {
    const auto scores = scores_of(count, random, 30);
    std::vector<float> weights(count, std::nanf(""));
    float maximum = kNothing, total = 0;
    softmax_f32(scores.data(), static_cast<std::int64_t>(count), static_cast<std::int64_t>(count), 0.5F,
                maximum, total, weights.data());
    EXPECT_EQ(maximum, *std::max_element(scores.begin(), scores.end()));
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const double expected = std::exp(0.5 * (double{scores[j]} - double{maximum}));
      // The exponential's own error, and that of the difference of two scores of up to 15.
      const double far = std::abs(0.5 * (double{scores[j]} - double{maximum}));
      ASSERT_NEAR(weights[j], expected, (3 + 0.5 * far) * 0x1p-23 * expected + 15 * 0x1p-23 * expected)
          << j << " of " << count;
      sum += expected;
    }
    EXPECT_NEAR(total, sum, 2e-6 * sum);
  }
}

// With a largest score of zero the differences are exact, and what is left is the exponential's own error.
TEST(SoftmaxTest, TheExponentialIsAsAccurateAsItSays) {
  std::vector<float> scores(20001, 0.0F), weights(20001);
  for (std::size_t j = 0; j < scores.size(); ++j) scores[j] = -80.0F * static_cast<float>(j) / 20000.0F;
  float maximum = kNothing, total = 0;
  softmax_f32(scores.data(), 20001, 20001, 1.0F, maximum, total, weights.data());
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double expected = std::exp(double{scores[j]});
    ASSERT_NEAR(weights[j], expected, (2 - 0.6 * double{scores[j]}) * 0x1p-23 * expected) << scores[j];
  }
}

TEST(SoftmaxTest, WhatIsNotSeenHasNoWeight) {
  Random random(2);
  auto scores = scores_of(20, random, 1);
  for (std::size_t j = 7; j < 20; ++j) scores[j] = std::nanf("");
  std::vector<float> weights(20, std::nanf(""));
  float maximum = kNothing, total = 0;
  softmax_f32(scores.data(), 7, 20, 1.0F, maximum, total, weights.data());
  for (std::size_t j = 7; j < 20; ++j) EXPECT_EQ(weights[j], 0.0F);
  EXPECT_NEAR(total, std::accumulate(weights.begin(), weights.end(), 0.0F), 1e-5F);
}

TEST(SoftmaxTest, ATileWithoutSeenKeysChangesNothing) {
  const std::vector<float> scores(8, 100.0F);
  std::vector<float> weights(8, std::nanf(""));
  float maximum = kNothing, total = 0;
  EXPECT_EQ(softmax_f32(scores.data(), 0, 8, 1.0F, maximum, total, weights.data()), 1.0F);
  EXPECT_EQ(maximum, kNothing);
  EXPECT_EQ(total, 0.0F);
  maximum = 2;
  total = 3;
  EXPECT_EQ(softmax_f32(scores.data(), 0, 8, 1.0F, maximum, total, weights.data()), 1.0F);
  EXPECT_EQ(maximum, 2.0F);
  EXPECT_EQ(total, 3.0F);
  EXPECT_EQ(weights, std::vector<float>(8, 0.0F));
}

// The running maximum and total over tiles are those of all keys at once, in whatever order the large scores
// come.
TEST(SoftmaxTest, TilesAddUpToTheWhole) {
  for (const float step : {0.3F, -0.3F, 0.0F}) {
    std::vector<float> scores(300);
    for (std::size_t j = 0; j < scores.size(); ++j) scores[j] = step * static_cast<float>(j);
    const double largest = *std::max_element(scores.begin(), scores.end());
    double expected = 0;
    for (const float score : scores) expected += std::exp(double{score} - largest);
    std::vector<float> weights(scores.size());
    float maximum = kNothing, total = 0;
    for (std::size_t first = 0; first < scores.size(); first += 64) {
      const auto keys = static_cast<std::int64_t>(std::min<std::size_t>(64, scores.size() - first));
      const float before = maximum;
      const float rescale =
          softmax_f32(scores.data() + first, keys, keys, 1.0F, maximum, total, weights.data() + first);
      if (before == kNothing) {
        EXPECT_TRUE(rescale == 0.0F || rescale == 1.0F);
      } else {
        EXPECT_NEAR(rescale, std::exp(double{before} - double{maximum}), 1e-6);
      }
    }
    EXPECT_EQ(maximum, static_cast<float>(largest));
    EXPECT_NEAR(total, expected, 1e-5 * expected) << "steps of " << step;
  }
}

TEST(SoftmaxTest, FarBelowTheMaximumThereIsNothing) {
  const std::vector<float> scores = {0.0F, -86.0F, -88.0F, -1000.0F, -3e38F};
  std::vector<float> weights(5);
  float maximum = kNothing, total = 0;
  softmax_f32(scores.data(), 5, 5, 1.0F, maximum, total, weights.data());
  EXPECT_EQ(weights[0], 1.0F);
  EXPECT_NEAR(weights[1], std::exp(-86.0), 1e-5 * std::exp(-86.0));
  for (const std::size_t j : {2U, 3U, 4U}) EXPECT_LE(weights[j], 0x1p-125F);
  EXPECT_EQ(total, 1.0F);
}

// Products see the rounded weights, so the total has to be theirs.
TEST(SoftmaxTest, TheTotalOfRoundedWeightsIsTheirs) {
  Random random(4);
  for (const std::size_t count : {1U, 17U, 509U}) {
    const auto scores = scores_of(count, random, 8);
    std::vector<bf16> weights(count + 3, bf16{0xffff});
    float maximum = kNothing, total = 0;
    softmax_bf16(scores.data(), static_cast<std::int64_t>(count), static_cast<std::int64_t>(count + 3), 1.0F,
                 maximum, total, weights.data());
    double sum = 0;
    for (std::size_t j = 0; j < count; ++j) {
      const double expected = std::exp(double{scores[j]} - double{maximum});
      ASSERT_NEAR(to_float(weights[j]), expected, 0x1p-8 * 1.01 * expected);
      sum += double{to_float(weights[j])};
    }
    for (std::size_t j = count; j < count + 3; ++j) EXPECT_EQ(weights[j].bits, 0);
    EXPECT_NEAR(total, sum, 1e-6 * sum);
  }
}

TEST(ScaleToBf16Test, MultipliesAndRounds) {
  Random random(5);
  const auto from = scores_of(37, random, 9);
  std::vector<bf16> to(38, bf16{0xffff});
  scale_to_bf16(from.data(), 37, 0.3F, to.data());
  for (std::size_t j = 0; j < 37; ++j) EXPECT_EQ(to[j].bits, to_bf16(from[j] * 0.3F).bits);
  EXPECT_EQ(to[37].bits, 0xffff);
}

}  // namespace
}  // namespace vigil::kernels
