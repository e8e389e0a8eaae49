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

TEST_F(VisionDeskTest, TheEncoderHearsWhatIsKeptOfWhomAndWhoHasEnded) {
  for (const WatchPtr& each : {a, b}) {
    desk.join(each);
    desk.grant(each->name, 2);
  }
  const auto pruned = std::make_shared<FramePatch>(*frame_patch(a, 0));
  pruned->groups = base::GridMask::none(1, 1);
  pruned->kept = base::GridMask::all(1, 1);
  desk.take(pruned);
  desk.take(frame_patch(b, 0));
  desk.work({clock.now()});
  EXPECT_THAT(encoder.cameras, ElementsAre("a", "b"));
  EXPECT_THAT(encoder.groups, ElementsAre(pruned->groups, std::nullopt));
  EXPECT_THAT(encoder.kept, ElementsAre(pruned->kept, std::nullopt));
  desk.end("a");
  EXPECT_THAT(encoder.forgotten, IsEmpty());
  EXPECT_THAT(desk.take_ended(), ElementsAre("a"));
  EXPECT_THAT(encoder.forgotten, ElementsAre("a"));
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
