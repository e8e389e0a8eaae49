#include "engine/run/tower_encoder.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "engine/run/vision_encoder.h"
#include "tests/engine/demo_model.h"

namespace vigil::run {
namespace {

using stream::testing::demo_model;
using stream::testing::Picture;

double largest_difference(const model::VisualTokens& a, const model::VisualTokens& b) {
  const std::size_t values = a.embeddings.bytes() / sizeof(float);
  double largest = a.embeddings.bytes() == b.embeddings.bytes() ? 0 : INFINITY;
  for (std::size_t i = 0; i < std::min(values, b.embeddings.bytes() / sizeof(float)); ++i)
    largest = std::max(largest, std::abs(double{a.embeddings.as<float>()[i]} - b.embeddings.as<float>()[i]));
  return largest;
}

class TowerEncoderTest : public ::testing::Test {
 protected:
  TowerEncoder encoder_{demo_model(), kernels::DType::f32, kernels::Stream::cpu(2)};
  Picture a_{112, 56, 1}, b_{112, 56, 2}, c_{84, 140, 3}, d_{84, 140, 4};
};

TEST_F(TowerEncoderTest, CamerasOfAnySizeShareAPassAndDoNotSeeEachOther) {
  const PatchFrames wide{{a_.view(), b_.view()}, 7.5, 1.0};
  const PatchFrames tall{{c_.view(), d_.view()}, 3.0, 0.5};
  const std::vector<PatchFrames> both{wide, tall, wide};
  const auto together = encoder_.encode(both);
  ASSERT_EQ(together.size(), 3U);
  EXPECT_EQ(together[0]->grid_width, 4);
  EXPECT_EQ(together[0]->grid_height, 2);
  EXPECT_EQ(together[1]->grid_width, 3);
  EXPECT_EQ(together[1]->grid_height, 5);
  EXPECT_EQ(together[0]->seconds, 7.5);
  EXPECT_EQ(together[1]->duration, 0.5);
  EXPECT_LT(largest_difference(*together[0], *encoder_.encode(std::span(&wide, 1))[0]), 1e-4);
  EXPECT_LT(largest_difference(*together[1], *encoder_.encode(std::span(&tall, 1))[0]), 1e-4);
  EXPECT_LT(largest_difference(*together[0], *together[2]), 1e-4);
}

TEST_F(TowerEncoderTest, EveryFrameMatters) {
  const std::vector<PatchFrames> patches{{{a_.view(), b_.view()}, 0, 1}, {{b_.view(), a_.view()}, 0, 1}};
  const auto encoded = encoder_.encode(patches);
  EXPECT_GT(largest_difference(*encoded[0], *encoded[1]), 1e-3) << "the order of the two frames has to show";
}

TEST_F(TowerEncoderTest, AShortPatchRepeatsItsLastFrame) {
  const std::vector<PatchFrames> patches{{{a_.view()}, 0, 1}, {{a_.view(), a_.view()}, 0, 1}};
  const auto encoded = encoder_.encode(patches);
  EXPECT_EQ(largest_difference(*encoded[0], *encoded[1]), 0);
}

TEST_F(TowerEncoderTest, NothingGivesNothing) {
  EXPECT_TRUE(encoder_.encode({}).empty());
}

TEST_F(TowerEncoderTest, RefusesWhatItCannotCut) {
  const Picture odd(100, 56, 5);
  const PatchFrames empty{{}, 0, 1};
  const PatchFrames uneven{{odd.view(), odd.view()}, 0, 1};
  const PatchFrames mixed{{a_.view(), c_.view()}, 0, 1};
  for (const PatchFrames* patch : {&empty, &uneven, &mixed})
    EXPECT_THROW(encoder_.encode(std::span(patch, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::run
