#include "engine/prune/reference.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tests/engine/prune/scene.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::choose;
using testing::mask;

/// No anchor but the first.
const PruningOptions kNoAnchors{.anchor_seconds = 1e9};

TEST(ReferenceTest, TheFirstPatchIsWholeAndWhatStaysIsNotSentAgain) {
  Reference policy(kNoAnchors);
  const Canvas a(3, 4);
  EXPECT_TRUE(choose(policy, 0, {&a, &a}).has_all());
  EXPECT_EQ(choose(policy, 1, {&a, &a}), mask(3, 4, {}));
}

TEST(ReferenceTest, WhatComesIsSentOnceAndAgainWhenItGoes) {
  Reference policy(kNoAnchors);
  const Canvas empty(3, 4);
  Canvas with_bag(3, 4);
  // Of group 6 the lower right patch alone.
  with_bag.box(2 * 28 + 14, 28 + 14, 14, 14, 160);
  choose(policy, 0, {&empty, &empty});
  EXPECT_EQ(choose(policy, 1, {&empty, &with_bag}), mask(3, 4, {6})) << "the second frame alone shows it";
  EXPECT_EQ(choose(policy, 2, {&with_bag, &with_bag}), mask(3, 4, {}));
  EXPECT_EQ(choose(policy, 3, {&empty, &with_bag}), mask(3, 4, {6})) << "the first frame alone is without";
  EXPECT_EQ(choose(policy, 4, {&with_bag, &with_bag}), mask(3, 4, {}))
      << "the last frame of the patch is what was last seen";
}

TEST(ReferenceTest, WhatCreepsIsSeenWhenItHasGoneFarEnough) {
  Reference policy(kNoAnchors);
  const Canvas start(2, 2);
  choose(policy, 0, {&start, &start});
  std::vector<int> sent;
  for (int i = 1; i <= 20; ++i) {
    Canvas now(2, 2);
    now.box(0, 0, 28, 28, static_cast<std::uint8_t>(100 + i));
    if (choose(policy, i, {&now, &now}) == mask(2, 2, {0})) sent.push_back(i);
  }
  // By more than 6 each time: a comparison with the frame before would never have seen it.
  EXPECT_EQ(sent, (std::vector{7, 14}));
}

TEST(ReferenceTest, WhatTheModelDidNotTakeComesWithTheNextPatch) {
  Reference policy(kNoAnchors);
  const Canvas empty(2, 3);
  Canvas changed(2, 3);
  changed.box(28, 0, 28, 28, 200);
  choose(policy, 0, {&empty, &empty});
  const base::GridMask sent = choose(policy, 1, {&changed, &changed});
  ASSERT_EQ(sent, mask(2, 3, {1}));
  policy.lost(sent);
  EXPECT_EQ(choose(policy, 2, {&changed, &changed}), mask(2, 3, {1}));
  EXPECT_EQ(choose(policy, 3, {&changed, &changed}), mask(2, 3, {})) << "once";
  policy.lost(mask(9, 9, {80}));
  EXPECT_EQ(choose(policy, 4, {&changed, &changed}), mask(2, 3, {})) << "of another size: ignored";
}

TEST(ReferenceTest, ALostAnchorIsMadeUpForWhole) {
  Reference policy(kNoAnchors);
  const Canvas empty(2, 3);
  policy.lost(choose(policy, 0, {&empty, &empty}));
  EXPECT_TRUE(choose(policy, 1, {&empty, &empty}).has_all());
}

TEST(ReferenceTest, AnchorsComeOnceInTheirTimeAtTheirPlace) {
  for (const double phase : {0.0, 0.25, 0.9}) {
    Reference policy({.anchor_seconds = 10, .anchor_phase = phase});
    const Canvas still(1, 2);
    std::vector<double> anchors;
    for (double seconds = 0; seconds < 40; seconds += 1)
      if (choose(policy, seconds, {&still, &still}).has_all()) anchors.push_back(seconds);
    ASSERT_GE(anchors.size(), 4U);
    EXPECT_EQ(anchors[0], 0) << "the first patch is one";
    EXPECT_EQ(anchors[1], std::ceil(10 - 10 * phase));
    for (std::size_t i = 2; i < anchors.size(); ++i) EXPECT_EQ(anchors[i] - anchors[i - 1], 10);
  }
}

TEST(ReferenceTest, NoiseIsLearntAndAThingIsStillSeenInIt) {
  Reference policy(kNoAnchors);
  std::mt19937 random(1);
  std::int64_t late = 0;
  for (int i = 0; i < 100; ++i) {
    Canvas a(4, 4), b(4, 4);
    a.noise(20, random);
    b.noise(20, random);
    const base::GridMask kept = choose(policy, i, {&a, &b});
    if (i >= 60) late += kept.count();
  }
  // Two frames of noise differ by 2/3 of 20.
  EXPECT_NEAR(policy.noise(), 13.3, 1.5);
  EXPECT_EQ(late, 0) << "of 640 groups that show nothing but noise";
  Canvas a(4, 4);
  a.box(0, 0, 28, 28, 160);
  a.noise(20, random);
  EXPECT_EQ(choose(policy, 100, {&a, &a}), mask(4, 4, {0}));
}

TEST(ReferenceTest, AnotherSizeBeginsAnew) {
  Reference policy(kNoAnchors);
  const Canvas small(2, 2), wide(2, 3);
  choose(policy, 0, {&small, &small});
  EXPECT_TRUE(choose(policy, 1, {&wide, &wide}).has_all());
  EXPECT_EQ(choose(policy, 2, {&wide, &wide}).count(), 0);
  EXPECT_TRUE(choose(policy, 3, {&small, &small}).has_all());
}

}  // namespace
}  // namespace vigil::prune
