#include "actors/vision/vision_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/patches.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct VisionDeskTest : ::testing::Test {
  FakeEncoder encoder;
  ManualClock clock;
  VisionDesk desk{encoder, clock, 4};
  WatchPtr a = watch("a"), b = watch("b");
};

TEST_F(VisionDeskTest, BatchesWhatMayGoAndTellsWhatBecameOfEach) {
  for (const WatchPtr& each : {a, b}) {
    EXPECT_TRUE(desk.join(each).is_new);
    desk.grant(each->name, 3);
  }
  EXPECT_EQ(desk.due(), std::nullopt);
  for (const WatchPtr& each : {a, b}) ASSERT_TRUE(desk.take(frame_patch(each, 0, 10)));
  ASSERT_TRUE(desk.take(frame_patch(a, 1, 255)));
  EXPECT_NE(desk.due(), std::nullopt);
  EXPECT_EQ(desk.waiting(), 3U);
  encoder.on_encode = [this] { clock.advance(10ms); };
  const auto begin = clock.now();
  desk.work({begin});
  const auto batch = desk.take_batch();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->encoded.patches.size(), 2U);
  ASSERT_EQ(batch->encoded.failures.size(), 1U);
  EXPECT_THAT(batch->failed, ElementsAre(a));
  EXPECT_EQ(batch->acks.size(), 3U);
  EXPECT_EQ(batch->encoded.span.begin, begin);
  EXPECT_EQ(batch->encoded.span.end, clock.now());
  EXPECT_FALSE(desk.take_batch()) << "once";
  EXPECT_EQ(desk.due(), std::nullopt);
}

TEST_F(VisionDeskTest, WhatFailedTakesNoCreditOfTheNextStage) {
  desk.join(a);
  desk.grant("a", 1);
  for (int second = 0; second < 3; ++second)
    ASSERT_TRUE(desk.take(frame_patch(a, second, second < 2 ? 255 : 9)));
  while (desk.due()) desk.work({clock.now()});
  EXPECT_EQ(desk.waiting(), 0U);
}

TEST_F(VisionDeskTest, RefusesWhomItDoesNotKnow) {
  EXPECT_FALSE(desk.take(frame_patch(a, 0))) << "it has not joined";
  desk.join(a);
  EXPECT_FALSE(desk.take(frame_patch(watch("a", 2), 0))) << "nobody told its settings";
  EXPECT_TRUE(desk.know(watch("a", 2)));
  EXPECT_TRUE(desk.take(frame_patch(watch("a", 2), 0)));
}

TEST_F(VisionDeskTest, ABatchThatIsNotFullGathersForAMomentAfterItsFirstPatch) {
  VisionDesk two(encoder, clock, 2);
  EXPECT_EQ(two.gathers_until(), std::nullopt);
  for (const WatchPtr& each : {a, b}) {
    two.join(each);
    two.grant(each->name, 9);
  }
  const auto captured = [&](const WatchPtr& owner, double seconds, base::Clock::TimePoint at) {
    const auto patch = frame_patch(owner, seconds);
    patch->captured.steady = at;
    return patch;
  };
  const base::Clock::TimePoint begin = clock.now();
  two.take(captured(a, 0, begin));
  EXPECT_EQ(two.gathers_until(), begin + VisionDesk::kGather);
  clock.advance(50ms);
  two.take(captured(b, 0, begin + 50ms));
  EXPECT_EQ(two.gathers_until(), std::nullopt) << "it is full";
  two.take(captured(b, 1, begin + 1050ms));
  two.work({clock.now()});
  EXPECT_EQ(two.gathers_until(), begin + 1050ms + VisionDesk::kGather);
}

TEST_F(VisionDeskTest, AnEndFollowsTheLastPatchAndForgetsTheSettings) {
  desk.join(a);
  desk.grant("a", 1);
  desk.take(frame_patch(a, 0));
  desk.end("a");
  EXPECT_THAT(desk.take_ended(), IsEmpty());
  desk.work({clock.now()});
  EXPECT_THAT(desk.take_ended(), ElementsAre("a"));
  EXPECT_EQ(desk.watch(a->ref()), nullptr);
}

/// As a policy has chosen nothing of it, of which the stream keeps what `kept` says.
FramePatchPtr pruned(const WatchPtr& owner, double second, std::optional<base::GridMask> kept = std::nullopt,
                     std::uint8_t value = 1) {
  const auto patch = frame_patch(owner, second, value);
  patch->encoded = base::GridMask::none(1, 2);
  patch->kept = std::move(kept);
  return patch;
}

TEST_F(VisionDeskTest, TheEncoderHearsWhatIsKeptOfWhomAndWhoHasEnded) {
  for (const WatchPtr& each : {a, b}) {
    desk.join(each);
    desk.grant(each->name, 2);
    desk.take(frame_patch(each, 0));
  }
  desk.work({clock.now()});
  encoder.cameras.clear(), encoder.groups.clear(), encoder.kept.clear();
  desk.take(pruned(a, 1, base::GridMask::all(1, 2)));
  desk.take(frame_patch(b, 1));
  desk.work({clock.now()});
  EXPECT_THAT(encoder.cameras, ElementsAre("a", "b"));
  EXPECT_THAT(encoder.groups, ElementsAre(base::GridMask::none(1, 2), std::nullopt));
  EXPECT_THAT(encoder.kept, ElementsAre(base::GridMask::all(1, 2), std::nullopt));
  desk.end("a");
  EXPECT_THAT(encoder.forgotten, IsEmpty());
  EXPECT_THAT(desk.take_ended(), ElementsAre("a"));
  EXPECT_THAT(encoder.forgotten, ElementsAre("a"));
}

// A camera that was moved from a device that was lost goes on choosing by what that one had seen, and hears
// nothing of it if no patch was under way.
TEST_F(VisionDeskTest, ACameraThatItDoesNotKnowBeginsWithAWholePictureWhateverIsChosenOfIt) {
  desk.join(a);
  desk.grant("a", 9);
  const auto encode_next = [&](const FramePatchPtr& patch) {
    EXPECT_TRUE(desk.take(patch));
    desk.work({clock.now()});
  };
  encode_next(pruned(a, 0, base::GridMask::none(1, 2)));
  EXPECT_EQ(encoder.groups.back(), std::nullopt);
  EXPECT_EQ(encoder.kept.back(), base::GridMask::all(1, 2)) << "so that the tower remembers it";
  encode_next(pruned(a, 1, base::GridMask::none(1, 2)));
  EXPECT_EQ(encoder.groups.back(), base::GridMask::none(1, 2)) << "and then as it chooses";
  EXPECT_EQ(encoder.kept.back(), base::GridMask::none(1, 2));
  EXPECT_FALSE(desk.join(a).is_new);
  encode_next(pruned(a, 2));
  EXPECT_EQ(encoder.groups.back(), base::GridMask::none(1, 2)) << "its next incarnation begins by itself";
  // When it has ended, it begins anew.
  desk.end("a");
  desk.take_ended();
  desk.join(a);
  desk.grant("a", 9);
  encode_next(pruned(a, 3));
  EXPECT_EQ(encoder.groups.back(), std::nullopt);
  EXPECT_EQ(encoder.kept.back(), std::nullopt) << "nothing is to be remembered of it";
}

// Of another node, only the pixels of what was chosen have come.
TEST_F(VisionDeskTest, ACameraThatItDoesNotKnowCannotBeginWithAPartOfItsPixels) {
  desk.join(a);
  desk.grant("a", 9);
  auto part = std::const_pointer_cast<FramePatch>(pruned(a, 0, base::GridMask::all(1, 2)));
  part->pixels = part->encoded;
  EXPECT_TRUE(desk.lacks(*part));
  EXPECT_FALSE(desk.lacks(*frame_patch(a, 1)));
  ASSERT_TRUE(desk.take(frame_patch(a, 1)));
  EXPECT_FALSE(desk.lacks(*part)) << "it comes behind a whole one";
  ASSERT_TRUE(desk.take(part));
  desk.work({clock.now()});
  EXPECT_FALSE(desk.lacks(*part));
}

TEST_F(VisionDeskTest, ItBeginsWithTheFirstPatchThatCanBeEncoded) {
  desk.join(a);
  desk.grant("a", 9);
  desk.take(pruned(a, 0, std::nullopt, 255));
  desk.take(pruned(a, 1));
  desk.work({clock.now()});
  const auto batch = desk.take_batch();
  ASSERT_TRUE(batch);
  ASSERT_EQ(batch->failed.size(), 1U);
  EXPECT_EQ(batch->acks.front().outcome, PatchOutcome::dropped);
  EXPECT_EQ(batch->acks.back().outcome, PatchOutcome::encoded);
  EXPECT_EQ(encoder.groups.back(), std::nullopt) << "the other one is whole, too";
  desk.take(pruned(a, 2));
  desk.work({clock.now()});
  EXPECT_EQ(encoder.groups.back(), base::GridMask::none(1, 2));
}

TEST_F(VisionDeskTest, AnotherThreadGetsOneBatchMoreThanItEncodes) {
  for (const WatchPtr& each : {a, b}) {
    desk.join(each);
    desk.grant(each->name, 8);
  }
  for (int second = 0; second < 4; ++second) desk.take(frame_patch(a, second));
  desk.take(frame_patch(b, 7, 255));
  const auto first = desk.begin();
  EXPECT_THAT(names(first), ElementsAre("a@0", "b@7", "a@1", "a@2"));
  const auto second = desk.begin();
  EXPECT_THAT(names(second), ElementsAre("a@3"));
  desk.take(frame_patch(a, 4));
  EXPECT_THAT(desk.begin(), IsEmpty()) << "more may come by its turn";
  EXPECT_EQ(desk.waiting(), 2U) << "but for those that are encoded";

  desk.finish(encode(encoder, clock, first));
  const auto batch = desk.take_batch();
  ASSERT_TRUE(batch);
  EXPECT_EQ(batch->encoded.patches.size(), 3U);
  EXPECT_THAT(batch->failed, ElementsAre(b));
  EXPECT_EQ(batch->acks.size(), 4U);
  EXPECT_EQ(desk.last(), 4U);
  EXPECT_THAT(names(desk.begin()), ElementsAre("a@4"));
  desk.finish(encode(encoder, clock, second));
  EXPECT_EQ(desk.take_batch()->encoded.patches.front()->tokens->seconds, 3);
}

TEST_F(VisionDeskTest, FullBatchesDoNotWaitForThisThread) {
  desk.join(a);
  desk.grant("a", 1000);
  int second = 0;
  std::size_t begun = 0;
  const auto take = [&](int count) {
    for (int i = 0; i < count; ++i) ASSERT_TRUE(desk.take(frame_patch(a, second++)));
  };
  for (; begun < VisionDesk::kFullUnderWay; ++begun) {
    take(4);
    EXPECT_EQ(desk.begin().size(), 4U) << begun;
  }
  take(4);
  EXPECT_THAT(desk.begin(), IsEmpty()) << "one that hangs is not given all there is";
}

TEST_F(VisionDeskTest, OnlyWhatMayGoCountsForAFullBatch) {
  for (const WatchPtr& each : {a, b}) desk.join(each);
  desk.grant("a", 8);
  for (int second = 0; second < 6; ++second) desk.take(frame_patch(b, second));
  for (int second = 0; second < 2; ++second) {
    desk.take(frame_patch(a, second));
    EXPECT_EQ(desk.begin().size(), 1U);
  }
  desk.take(frame_patch(a, 2));
  EXPECT_THAT(desk.begin(), IsEmpty()) << "it had better wait for others";
}

TEST_F(VisionDeskTest, BatchesThatWereBegunBeforePassesShrankDoNotShrinkThemAgain) {
  desk.join(a);
  desk.grant("a", 8);
  for (int second = 0; second < 8; ++second) desk.take(frame_patch(a, second));
  encoder.on_encode = [this] {
    if (encoder.batches.back() > 1) throw std::bad_alloc();
  };
  const auto first = desk.begin();
  const auto second = desk.begin();
  desk.finish(encode(encoder, clock, first));
  desk.finish(encode(encoder, clock, second));
  EXPECT_EQ(desk.most(), 2U);
}

TEST_F(VisionDeskTest, AnEndWaitsForWhatIsUnderWay) {
  desk.join(a);
  desk.grant("a", 1);
  desk.take(frame_patch(a, 0));
  desk.end("a");
  desk.join(b);
  desk.end("b");
  const auto patches = desk.begin();
  EXPECT_THAT(desk.take_ended(), ElementsAre("b")) << "others' ends do not wait for it";
  EXPECT_NE(desk.watch(a->ref()), nullptr);
  desk.finish(encode(encoder, clock, patches));
  EXPECT_THAT(desk.take_ended(), ElementsAre("a"));
}

TEST_F(VisionDeskTest, PassesShrinkWhereMemoryIsShort) {
  desk.join(a);
  desk.grant("a", 8);
  for (int second = 0; second < 4; ++second) desk.take(frame_patch(a, second));
  encoder.on_encode = [this] {
    if (encoder.batches.back() > 1) throw std::bad_alloc();
  };
  desk.work({clock.now()});
  const auto batch = desk.take_batch();
  EXPECT_EQ(batch->encoded.patches.size(), 4U);
  EXPECT_EQ(batch->limit, 2U);
  EXPECT_EQ(desk.most(), 2U);
}

}  // namespace
}  // namespace vigil::actors
