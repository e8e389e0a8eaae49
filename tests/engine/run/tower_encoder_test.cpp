#include "engine/run/tower_encoder.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/files/safetensors.h"
#include "engine/run/vision_encoder.h"
#include "tests/engine/demo_model.h"
#include "tests/kernels/on_device.h"

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
  EXPECT_EQ(together[0]->groups, base::GridMask::all(2, 4));
  EXPECT_EQ(together[1]->groups, base::GridMask::all(5, 3));
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

/// Beside transformers' own tower, which was given the rows of some squares (tools/golden_groups.py).
class GroupsTest : public ::testing::Test {
 protected:
  /// Nothing of a GPU is made before it is known that there is one.
  void SetUp() override {
    VIGIL_SKIP_WITHOUT_DEVICE();
    stream_ = kernels::test_stream(2);
    encoder_ = std::make_unique<TowerEncoder>(demo_model(), kernels::DType::f32, stream_);
  }

  /// The same two frames, with the groups of each case.
  PatchFrames patch(const std::string& name) const {
    const model::TensorView& frames = *golden_->find("frames");
    const auto height = static_cast<int>(frames.shape[1]);
    const auto width = static_cast<int>(frames.shape[2]);
    const auto* rgb = reinterpret_cast<const std::uint8_t*>(frames.data);
    PatchFrames patch{{{rgb, width, height}, {rgb + 3 * width * height, width, height}}, 0, 1};
    patch.groups = base::GridMask::none(height / 28, width / 28);
    if (name == "none") return patch;
    const model::TensorView& groups = *golden_->find(name + "/groups");
    for (std::int64_t i = 0; i < groups.shape[0]; ++i)
      patch.groups->add(reinterpret_cast<const std::int32_t*>(groups.data)[i]);
    EXPECT_EQ(patch.groups->has_all(), name == "all");
    return patch;
  }

  /// |made - expected| / |expected|
  double error_of(const model::VisualTokens& tokens, const std::string& name) const {
    const model::TensorView& expected = *golden_->find(name + "/embeddings");
    EXPECT_EQ(tokens.count(), expected.shape[0]) << name;
    EXPECT_EQ(tokens.width, expected.shape[1]);
    if (static_cast<std::size_t>(tokens.count() * tokens.width) * sizeof(float) != expected.bytes())
      return INFINITY;
    std::vector<float> made(expected.bytes() / sizeof(float));
    kernels::download(stream_, made.data(), tokens.embeddings.data(), expected.bytes());
    const auto* values = reinterpret_cast<const float*>(expected.data);
    double error = 0, size = 0;
    for (std::size_t i = 0; i < made.size(); ++i) {
      error += std::pow(double{made[i]} - values[i], 2);
      size += std::pow(values[i], 2);
    }
    return std::sqrt(error / size);
  }

  const std::shared_ptr<const model::SafetensorsFile> golden_ =
      model::SafetensorsFile::open(VIGIL_SOURCE_DIR "/tests/golden/groups.safetensors");
  kernels::Stream stream_ = kernels::Stream::cpu(1);
  std::unique_ptr<TowerEncoder> encoder_;
};

TEST_F(GroupsTest, AreWhatTransformersTowerMakesOfTheirRowsInAnyCompany) {
  const std::vector<std::string> names{"scattered", "all", "none", "one", "windows"};
  std::vector<PatchFrames> patches;
  for (const std::string& name : names) patches.push_back(patch(name));
  const auto together = encoder_->encode(patches);
  ASSERT_EQ(together.size(), names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(together[i]->groups, *patches[i].groups);
    const auto alone = encoder_->encode(std::span(&patches[i], 1)).front();
    EXPECT_EQ(alone->groups, *patches[i].groups);
    if (names[i] == "none") continue;
    EXPECT_LT(error_of(*together[i], names[i]), 2e-6) << names[i];
    EXPECT_LT(error_of(*alone, names[i]), 2e-6) << names[i];
  }
}

TEST_F(TowerEncoderTest, NothingGivesNothing) {
  EXPECT_TRUE(encoder_.encode({}).empty());
}

TEST_F(TowerEncoderTest, RefusesWhatItCannotCut) {
  const Picture odd(100, 56, 5);
  const PatchFrames empty{{}, 0, 1};
  const PatchFrames uneven{{odd.view(), odd.view()}, 0, 1};
  const PatchFrames mixed{{a_.view(), c_.view()}, 0, 1};
  const PatchFrames wrong{{a_.view(), b_.view()}, 0, 1, base::GridMask::all(4, 2)};
  for (const PatchFrames* patch : {&empty, &uneven, &mixed, &wrong})
    EXPECT_THROW(encoder_.encode(std::span(patch, 1)), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::run
