#include "actors/vision/patch_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/patches.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(PatchQueue, ServesCamerasInTurnWithinTheCreditOfTheNextStage) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  const WatchPtr b = watch("b");
  const WatchPtr c = watch("c");
  for (const WatchPtr& each : {a, b, c}) {
    EXPECT_EQ(queue.join(*each).credits, 4U) << "two strides of two patches";
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(queue.push(frame_patch(each, i)));
  }
  queue.grant("a", 10);
  queue.grant("b", 1);
  queue.grant("nobody", 1);
  EXPECT_THAT(names(queue.pop(2)), ElementsAre("a@0", "b@0"));
  EXPECT_THAT(names(queue.pop(8)), ElementsAre("a@1", "a@2")) << "b has no credit left, c never had";
  queue.grant("b", 5);
  queue.grant("c", 5);
  EXPECT_THAT(names(queue.pop(8)), ElementsAre("b@1", "c@0", "b@2", "c@1", "c@2"))
      << "the turn goes on behind a";
  EXPECT_EQ(queue.size(), 0U);
}

TEST(PatchQueue, ABatchIsAsMuchAsSoManyWholePatches) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a"), b = watch("b");
  const auto part = [](const WatchPtr& owner, double seconds, std::int64_t groups) {
    auto patch = frame_patch(owner, seconds);
    patch->encoded = base::GridMask::none(2, 8);
    for (std::int64_t i = 0; i < groups; ++i) patch->encoded->add(i);
    return patch;
  };
  for (const WatchPtr& each : {a, b}) {
    queue.join(*each);
    queue.grant(each->name, 100);
  }
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(queue.push(part(a, i, 4)));
  ASSERT_TRUE(queue.push(part(a, 6, 16)));
  ASSERT_TRUE(queue.push(frame_patch(a, 7)));
  EXPECT_DOUBLE_EQ(queue.ready(), 6.0 / 4 + 2);
  EXPECT_THAT(names(queue.pop(1)), ElementsAre("a@0", "a@1", "a@2", "a@3"));
  EXPECT_THAT(names(queue.pop(1)), ElementsAre("a@4", "a@5")) << "the next one does not fit beside them";
  EXPECT_THAT(names(queue.pop(1)), ElementsAre("a@6"));
  EXPECT_THAT(names(queue.pop(1)), ElementsAre("a@7")) << "without a mask it is whole";
  // Nothing to encode is something to do, too: a batch has an end.
  for (int i = 8; i < 12; ++i) ASSERT_TRUE(queue.push(part(a, i, 0)));
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(queue.push(part(b, i, 0)));
  EXPECT_EQ(queue.pop(1).size(), 8U);
  EXPECT_DOUBLE_EQ(queue.ready(), 0.5);
}

TEST(PatchQueue, IsBoundedForEachCamera) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  EXPECT_FALSE(queue.push(frame_patch(a, 0))) << "it has not joined";
  queue.join(*a);
  int taken = 0;
  for (int i = 0; i < 100; ++i) taken += queue.push(frame_patch(a, i)) ? 1 : 0;
  EXPECT_EQ(taken, 8);
  EXPECT_EQ(queue.size(), 8U);
}

TEST(PatchQueue, AnEndFollowsTheLastPatch) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  queue.join(*a);
  queue.push(frame_patch(a, 0));
  queue.end("a");
  EXPECT_TRUE(queue.pop(8).empty());
  EXPECT_THAT(queue.take_ended(), IsEmpty()) << "no credit: neither the patch nor the end";
  queue.grant("a", 1);
  const auto popped = queue.pop(8);
  ASSERT_EQ(popped.size(), 1U);
  EXPECT_THAT(queue.take_ended(), IsEmpty()) << "it is under way";
  queue.done(*popped.front());
  EXPECT_THAT(queue.take_ended(), ElementsAre("a"));
  EXPECT_THAT(queue.take_ended(), IsEmpty());
  EXPECT_FALSE(queue.push(frame_patch(a, 1))) << "after its end a camera has to join again";
  EXPECT_TRUE(queue.join(*a).is_new);
}

TEST(PatchQueue, TheNextIncarnationOfACameraIsNoNews) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  EXPECT_TRUE(queue.join(*a).is_new);
  queue.push(frame_patch(a, 0, 1, /*generation=*/0));
  EXPECT_FALSE(queue.join(*a).is_new);
  queue.push(frame_patch(a, 5, 1, /*generation=*/1));
  queue.grant("a", 8);
  EXPECT_THAT(names(queue.pop(8)), ElementsAre("a@0", "a@5"));
}

TEST(PatchQueue, TheOldestThatMayBePoppedIsDueFirst) {
  PatchQueue queue(2);
  const WatchPtr a = watch("a");
  const WatchPtr b = watch("b");
  queue.join(*a);
  queue.join(*b);
  EXPECT_EQ(queue.oldest(), std::nullopt);
  const auto at = [&](const WatchPtr& owner, int second) {
    auto patch = frame_patch(owner, second);
    patch->captured.steady = base::Clock::TimePoint(std::chrono::seconds(100 + second));
    queue.push(patch);
  };
  at(a, 5);
  at(a, 6);
  at(b, 3);
  EXPECT_EQ(queue.oldest(), std::nullopt) << "without credit none may";
  queue.grant("a", 2);
  EXPECT_EQ(queue.oldest(), base::Clock::TimePoint(std::chrono::seconds(105)));
  queue.grant("b", 1);
  EXPECT_EQ(queue.oldest(), base::Clock::TimePoint(std::chrono::seconds(103)));
}

}  // namespace
}  // namespace vigil::actors
