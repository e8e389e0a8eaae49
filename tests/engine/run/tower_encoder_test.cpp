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
  EXPECT_EQ(together[0]->kept, base::GridMask::all(2, 4));
  EXPECT_EQ(together[1]->kept, base::GridMask::all(5, 3));
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
    patch.encoded = base::GridMask::none(height / 28, width / 28);
    if (name == "none") return patch;
    const model::TensorView& groups = *golden_->find(name + "/groups");
    for (std::int64_t i = 0; i < groups.shape[0]; ++i)
      patch.encoded->add(reinterpret_cast<const std::int32_t*>(groups.data)[i]);
    EXPECT_EQ(patch.encoded->has_all(), name == "all");
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
    EXPECT_EQ(together[i]->kept, *patches[i].encoded);
    const auto alone = encoder_->encode(std::span(&patches[i], 1)).front();
    EXPECT_EQ(alone->kept, *patches[i].encoded);
    if (names[i] == "none") continue;
    EXPECT_LT(error_of(*together[i], names[i]), 2e-6) << names[i];
    EXPECT_LT(error_of(*alone, names[i]), 2e-6) << names[i];
  }
}

/// A camera that is remembered: its picture of 8 x 8 groups, four windows of the tower's attention.
class RememberedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    VIGIL_SKIP_WITHOUT_DEVICE();
    stream_ = kernels::test_stream(2);
    encoder_ = std::make_unique<TowerEncoder>(demo_model(), kernels::DType::f32, stream_);
  }

  static base::GridMask all() { return base::GridMask::all(8, 8); }
  /// Groups of the rows and columns [first, last).
  static base::GridMask square(int first, int last) {
    base::GridMask mask = base::GridMask::none(8, 8);
    for (int y = first; y < last; ++y)
      for (int x = first; x < last; ++x) mask.add(y, x);
    return mask;
  }
  static PatchFrames patch(const Picture& picture, const base::GridMask& groups, const base::GridMask& kept,
                           const std::string& camera = "gate") {
    PatchFrames made{{picture.view(), picture.view()}, 0, 1, groups};
    made.kept = kept;
    made.camera = camera;
    return made;
  }
  static PatchFrames whole(const Picture& picture) { return {{picture.view(), picture.view()}, 0, 1}; }

  model::VisualTokensPtr encode(const PatchFrames& patch) {
    return encoder_->encode(std::span(&patch, 1)).front();
  }
  std::vector<float> values(const model::VisualTokens& tokens) const {
    std::vector<float> made(tokens.embeddings.bytes() / sizeof(float));
    kernels::download(stream_, made.data(), tokens.embeddings.data(), tokens.embeddings.bytes());
    return made;
  }
  std::vector<float> token(const model::VisualTokens& tokens, std::int32_t group) const {
    const std::vector<std::int32_t> groups = tokens.kept.list();
    const auto at = std::find(groups.begin(), groups.end(), group) - groups.begin();
    const std::vector<float> all = values(tokens);
    return {all.begin() + at * tokens.width, all.begin() + (at + 1) * tokens.width};
  }
  /// |a - b| / |b| over the tokens of these groups.
  double difference(const model::VisualTokens& a, const model::VisualTokens& b,
                    const base::GridMask& groups) const {
    double error = 0, size = 0;
    for (const std::int32_t group : groups.list()) {
      const std::vector<float> x = token(a, group), y = token(b, group);
      for (std::size_t i = 0; i < x.size(); ++i) {
        error += std::pow(double{x[i]} - y[i], 2);
        size += std::pow(double{y[i]}, 2);
      }
    }
    return std::sqrt(error / size);
  }

  /// The same but for what lies under a square of groups.
  static Picture changed(const Picture& from, int first, int last) {
    Picture picture = from;
    const Picture other(224, 224, 99);
    for (int y = 28 * first; y < 28 * last; ++y)
      for (int x = 28 * first * 3; x < 28 * last * 3; ++x) {
        const auto at = static_cast<std::size_t>(y * 224 * 3 + x);
        picture.rgb[at] = other.rgb[at];
      }
    return picture;
  }

  kernels::Stream stream_ = kernels::Stream::cpu(1);
  std::unique_ptr<TowerEncoder> encoder_;
  Picture a_{224, 224, 1};
};

TEST_F(RememberedTest, WhatDidNotChangeIsSeenAsItWas) {
  const auto before = encode(patch(a_, all(), all()));
  EXPECT_EQ(before->encoded, 64);
  EXPECT_LT(difference(*before, *encode(whole(a_)), all()), 1e-5) << "nothing was remembered yet";
  // A window of the same picture again: its blocks of full attention see what they would see.
  const auto again = encode(patch(a_, square(0, 4), square(0, 4)));
  EXPECT_EQ(again->encoded, 16);
  EXPECT_EQ(again->kept, square(0, 4));
  EXPECT_LT(difference(*again, *before, square(0, 4)), 1e-5);
  PatchFrames alone = whole(a_);
  alone.encoded = square(0, 4);
  EXPECT_GT(difference(*encode(alone), *before, square(0, 4)), 0.05) << "without the rest of the picture";
}

TEST_F(RememberedTest, WhatChangedIsNearerToTheWholePicturesTokensThanWithoutIt) {
  encode(patch(a_, all(), all()));
  const Picture b = changed(a_, 1, 3);
  const auto expected = encode(whole(b));
  for (const auto& [groups, most] : {std::pair(square(0, 4), 0.7), {square(1, 3), 0.9}}) {
    PatchFrames alone = whole(b);
    alone.encoded = groups;
    const double without = difference(*encode(alone), *expected, groups);
    encode(patch(a_, all(), all()));
    const double with = difference(*encode(patch(b, groups, groups)), *expected, groups);
    EXPECT_GT(with, 1e-3) << "it is not free of error";
    EXPECT_LT(with, most * without);
  }
}

TEST_F(RememberedTest, WhatIsKeptAndNotEncodedHasItsLastToken) {
  const auto before = encode(patch(a_, all(), all()));
  const Picture b = changed(a_, 1, 3);
  base::GridMask kept = square(2, 6);
  const auto after = encode(patch(b, square(1, 3), kept));
  EXPECT_EQ(after->encoded, 4);
  EXPECT_EQ(after->kept, kept);
  for (const std::int32_t group : kept.list())
    EXPECT_EQ(token(*after, group) == token(*before, group), group != 2 * 8 + 2) << group;
  // What was encoded and not kept then is there now.
  const auto last = encode(patch(b, base::GridMask::none(8, 8), all()));
  EXPECT_EQ(last->encoded, 0);
  EXPECT_EQ(token(*last, 2 * 8 + 2), token(*after, 2 * 8 + 2));
  EXPECT_NE(token(*last, 1 * 8 + 1), token(*before, 1 * 8 + 1));
  EXPECT_EQ(token(*last, 0), token(*before, 0));
}

TEST_F(RememberedTest, WhatStandsOutIsOfWhatIsKept) {
  PatchFrames first = patch(a_, all(), all());
  EXPECT_FALSE(encode(first)->standing_out) << "nobody said";
  first.standing_out = square(2, 6);
  EXPECT_EQ(encode(first)->standing_out, square(2, 6));
  PatchFrames part = patch(a_, square(0, 2), square(0, 4));
  part.standing_out = square(2, 6);
  EXPECT_EQ(encode(part)->standing_out, square(2, 4)) << "of what was made now or before";
  part.standing_out = base::GridMask::none(8, 8);
  EXPECT_EQ(encode(part)->standing_out, base::GridMask::none(8, 8)) << "nothing does, and that is known";
  part.standing_out = base::GridMask::none(8, 7);
  EXPECT_THROW(encode(part), std::invalid_argument);
}

TEST_F(RememberedTest, PatchesOfOneCallAreAsThoseOfSeveral) {
  const Picture b = changed(a_, 1, 3), c = changed(b, 5, 8), other(224, 224, 7);
  const std::vector<PatchFrames> patches{patch(a_, all(), all()),
                                         patch(other, all(), all(), "yard"),
                                         patch(b, square(1, 3), all()),
                                         whole(other),
                                         patch(c, square(5, 8), square(0, 6)),
                                         patch(other, square(0, 2), square(0, 4), "yard")};
  const auto together = encoder_->encode(patches);
  TowerEncoder second(demo_model(), kernels::DType::f32, stream_);
  ASSERT_EQ(together.size(), patches.size());
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const auto alone = second.encode(std::span(&patches[i], 1)).front();
    ASSERT_EQ(together[i]->kept, alone->kept) << i;
    EXPECT_EQ(together[i]->encoded, alone->encoded) << i;
    EXPECT_LT(difference(*together[i], *alone, alone->kept), 1e-5) << i;
  }
}

TEST_F(RememberedTest, WhatIsNotRememberedAnyMoreIsEncoded) {
  const auto expected = encode(whole(a_));
  const auto lost = [&](const std::string& why) {
    const auto tokens = encode(patch(a_, square(0, 1), square(0, 4)));
    EXPECT_EQ(tokens->encoded, 64) << why;
    EXPECT_EQ(tokens->kept, square(0, 4)) << why;
    EXPECT_LT(difference(*tokens, *expected, square(0, 4)), 1e-5) << why;
    EXPECT_EQ(encode(patch(a_, square(0, 1), square(0, 4)))->encoded, 1) << why;
  };
  lost("a camera that begins");
  encoder_->forget("gate");
  lost("a camera that had ended");
  const Picture small(112, 112, 3);
  encode(patch(small, base::GridMask::all(4, 4), base::GridMask::all(4, 4)));
  lost("another size in between");
  encode(whole(a_));
  PatchFrames plain = whole(a_);
  plain.camera = "gate";
  encode(plain);
  lost("the camera is not to be remembered any more");
  PatchFrames wrong = patch(a_, square(0, 1), base::GridMask::all(4, 4));
  EXPECT_THROW(encode(wrong), std::invalid_argument);
  EXPECT_EQ(encode(patch(a_, square(0, 1), square(0, 4)))->encoded, 1) << "what is refused changes nothing";
}

// A batch is as large as what was chosen of its patches; that all of them is encoded after all makes no pass
// larger.
TEST_F(RememberedTest, WhatIsNotRememberedMakesNoPassLarger) {
  std::vector<PatchFrames> patches;
  for (int camera = 0; camera < 6; ++camera)
    patches.push_back(patch(a_, square(0, 4), all(), std::to_string(camera)));
  const auto expected = encode(whole(a_));
  ASSERT_EQ(encoder_->largest_pass(), 64);
  const auto first = encoder_->encode(patches);
  for (const auto& tokens : first) {
    EXPECT_EQ(tokens->encoded, 64);
    EXPECT_LT(difference(*tokens, *expected, all()), 1e-5);
  }
  EXPECT_EQ(encoder_->largest_pass(), 64) << "of the 96 that were asked for";
  for (const auto& tokens : encoder_->encode(patches)) EXPECT_EQ(tokens->encoded, 16);
  EXPECT_EQ(encoder_->largest_pass(), 96) << "together";
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
