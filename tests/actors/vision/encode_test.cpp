#include "actors/vision/encode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/patches.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

TEST(Encode, OnePassForAll) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  ManualClock clock;
  encoder.on_encode = [&] { clock.advance(30ms); };
  const auto begin = clock.now();
  const Encoded encoded = encode(encoder, clock, {frame_patch(a, 0, 10), frame_patch(watch("b"), 3, 20)});
  ASSERT_EQ(encoded.patches.size(), 2U);
  for (const VisualPatchPtr& patch : encoded.patches) {
    EXPECT_EQ(patch->encoded.begin, begin);
    EXPECT_EQ(patch->encoded.end - begin, 30ms);
  }
  ASSERT_EQ(encoded.patches.size(), 2U);
  EXPECT_THAT(encoder.batches, ElementsAre(2U));
  EXPECT_EQ(encoded.patches[1]->watch.camera, "b");
  EXPECT_EQ(encoded.patches[1]->tokens->embeddings.as<float>()[0], 20);
  EXPECT_EQ(encoded.patches[1]->tokens->seconds, 3);
  EXPECT_EQ(encoded.patches[1]->frames, 2);
}

TEST(Encode, TheEncoderIsAskedForTheGroupsOfThePatch) {
  FakeEncoder encoder;
  auto some = std::make_shared<FramePatch>(*frame_patch(watch("a"), 0, 10));
  some->encoded = base::GridMask::none(1, 2);
  some->encoded->add(1);
  some->standing_out = base::GridMask::none(1, 2);
  encode(encoder, ManualClock(), {frame_patch(watch("b"), 0, 20), some});
  EXPECT_THAT(encoder.groups, ElementsAre(std::nullopt, some->encoded));
  EXPECT_THAT(encoder.standing_out, ElementsAre(std::nullopt, some->standing_out));
}

TEST(Encode, OfAnAuditedPatchThereAreTokensOfAllGroupsToo) {
  FakeEncoder encoder;
  ManualClock clock;
  const auto audited = [&](base::Duration age) {
    auto patch = std::make_shared<FramePatch>(*frame_patch(watch("a"), 0, 10));
    patch->encoded = base::GridMask::none(1, 2);
    patch->kept = base::GridMask::none(1, 2);
    patch->standing_out = base::GridMask::all(1, 2);
    patch->audit = 4;
    patch->captured.steady = clock.now() - age;
    return patch;
  };
  auto all = audited(0s);
  all->encoded.reset();
  all->kept.reset();
  Encoded encoded = encode(encoder, clock, {audited(1s), frame_patch(watch("b"), 0, 20)});
  ASSERT_EQ(encoded.patches.size(), 2U);
  EXPECT_THAT(encoder.batches, ElementsAre(2U, 1U));
  EXPECT_EQ(encoder.groups.back(), std::nullopt) << "by itself, of all groups";
  EXPECT_EQ(encoder.standing_out.front(), base::GridMask::all(1, 2));
  EXPECT_EQ(encoder.standing_out.back(), std::nullopt) << "an audit's tokens are not remembered";
  EXPECT_EQ(encoded.patches[0]->audit, 4);
  ASSERT_TRUE(encoded.patches[0]->whole);
  EXPECT_NE(encoded.patches[0]->whole, encoded.patches[0]->tokens);
  EXPECT_EQ(encoded.patches[1]->audit, std::nullopt);
  EXPECT_FALSE(encoded.patches[1]->whole);
  encoder.batches.clear();
  encoded = encode(encoder, clock, {audited(3s)});
  EXPECT_THAT(encoder.batches, ElementsAre(1U)) << "the device is behind";
  EXPECT_FALSE(encoded.patches[0]->whole);
  EXPECT_EQ(encoded.patches[0]->audit, 4);
}

TEST(Encode, APatchThatShowsAnIFrameSaysSo) {
  FakeEncoder encoder;
  std::vector<FramePatchPtr> patches;
  for (const media::FrameType type : {media::FrameType::predicted, media::FrameType::intra}) {
    auto patch = std::make_shared<FramePatch>(*frame_patch(watch("a"), 0, 10));
    patch->frames.back().type = type;
    patches.push_back(std::move(patch));
  }
  const Encoded encoded = encode(encoder, ManualClock(), patches);
  EXPECT_FALSE(encoded.patches[0]->tokens->intra);
  EXPECT_TRUE(encoded.patches[1]->tokens->intra);
}

TEST(Encode, APatchThatFailsTakesNoOtherWithIt) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  const Encoded encoded =
      encode(encoder, ManualClock(), {frame_patch(a, 0, 10), frame_patch(a, 1, 255), frame_patch(a, 2, 30)});
  ASSERT_EQ(encoded.patches.size(), 2U);
  EXPECT_EQ(encoded.patches[1]->tokens->embeddings.as<float>()[0], 30);
  ASSERT_EQ(encoded.failures.size(), 1U);
  EXPECT_EQ(encoded.failures[0].patch->seconds, 1);
  EXPECT_EQ(encoded.failures[0].reason, "a frame of 4 by 2 pixels");
  EXPECT_EQ(encoded.too_many, "");
}

TEST(Encode, EveryPatchIsAcknowledgedWithWhatBecameOfIt) {
  FakeEncoder encoder;
  const WatchPtr a = watch("a");
  auto bad = std::make_shared<FramePatch>(*frame_patch(a, 1, 255, /*generation=*/3));
  bad->sequence = 7;
  const std::vector<FramePatchPtr> patches = {frame_patch(a, 0, 10), bad, frame_patch(watch("b"), 2, 30)};
  EXPECT_THAT(acks_of(patches, encode(encoder, ManualClock(), patches)),
              ElementsAre(PatchAck{"a", 0, 0, PatchOutcome::encoded},
                          PatchAck{"a", 3, 7, PatchOutcome::dropped, "encode_failed"},
                          PatchAck{"b", 0, 0, PatchOutcome::encoded}));
  encoder.on_encode = [] { throw std::bad_alloc(); };
  EXPECT_THAT(acks_of({bad}, encode(encoder, ManualClock(), {bad})),
              ElementsAre(PatchAck{"a", 3, 7, PatchOutcome::dropped, "out_of_memory"}));
}

TEST(Encode, MemoryThatIsGoneOnceThePatchesAreTriedAloneIsTold) {
  FakeEncoder encoder;
  encoder.on_encode = [&] {
    if (encoder.batches.size() == 3) throw std::bad_alloc();
  };
  const WatchPtr a = watch("a");
  const Encoded encoded = encode(encoder, ManualClock(), {frame_patch(a, 0, 255), frame_patch(a, 1, 20)});
  EXPECT_THAT(encoder.batches, ElementsAre(2U, 1U, 1U));
  ASSERT_EQ(encoded.failures.size(), 2U);
  EXPECT_EQ(encoded.failures[0].kind, Encoded::Failure::Kind::failed);
  EXPECT_EQ(encoded.failures[1].kind, Encoded::Failure::Kind::out_of_memory);
  EXPECT_EQ(encoded.too_many, std::bad_alloc().what());
}

}  // namespace
}  // namespace vigil::actors
