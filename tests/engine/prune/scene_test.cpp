// What changes in a street is kept, and what does not is not.
#include "engine/prune/scene.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>

#include "tests/engine/prune/street.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::choose;
using testing::mask;
using testing::Street;
using testing::Take;
using testing::Thing;
using testing::Watch;

/// No anchor of the clock but the first.
const PruningOptions kNoAnchors{.anchor_seconds = 1e9};

/// The groups of an 8 x 8 picture that a thing touches, with so many pixels at least.
base::GridMask under(const Thing& thing, int pixels = 1) {
  base::GridMask groups = base::GridMask::none(8, 8);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column) {
      const int wide =
          std::min(thing.left + thing.wide, 28 * column + 28) - std::max(thing.left, 28 * column);
      const int high = std::min(thing.top + thing.high, 28 * row + 28) - std::max(thing.top, 28 * row);
      if (wide > 0 && high > 0 && wide * high >= pixels) groups.add(row, column);
    }
  return groups;
}

bool has(const base::GridMask& groups, const base::GridMask& those) {
  for (const std::int32_t group : those.list())
    if (!groups.has(group)) return false;
  return true;
}

class SceneTest : public ::testing::Test {
 protected:
  Street street_{1};
  Scene policy_{kNoAnchors, Scene::Stream::changes};
  Watch watch_{policy_};
};

TEST_F(SceneTest, TheFirstPatchIsWholeAndNoiseIsNotSent) {
  EXPECT_FALSE(policy_.wants_motion());
  EXPECT_TRUE(watch_.patch(street_).has_all());
  for (int i = 0; i < 30; ++i) EXPECT_EQ(watch_.patch(street_).count(), 0) << i;
}

TEST_F(SceneTest, ACarIsKeptWhileItDrivesOnceWhereItStopsAndSoIsWhatItLeaves) {
  watch_.patch(street_);
  Thing car{-40, 120, 60, 36, {200, 40, 40}};
  for (int i = 0; i < 8; ++i) {
    const Thing was = car;
    car.left += 18;
    const base::GridMask kept = watch_.patch(street_, {.things = {was}}, {.things = {car}});
    EXPECT_EQ(watch_.stale(street_, {.things = {car}}, 6).count(), 0) << i;
    EXPECT_LT(kept.count(), 24) << i;
  }
  const Take parked{.things = {car}};
  watch_.patch(street_, parked);
  watch_.count_anew();
  for (int i = 0; i < 20; ++i) watch_.patch(street_, parked);
  EXPECT_EQ(watch_.kept(), 0) << "it stands";
  EXPECT_EQ(watch_.stale(street_, parked, 5).count(), 0);
  const base::GridMask left = watch_.patch(street_);
  EXPECT_TRUE(has(left, under(car, 196))) << "the ground behind it";
  EXPECT_EQ(watch_.patch(street_).count(), 0);
  EXPECT_EQ(watch_.stale(street_, {}, 5).count(), 0);
}

TEST_F(SceneTest, ABagIsKeptOnceAlsoOfItsGroundsBrightness) {
  const Street ground(1, 8, 0);
  watch_.patch(ground);
  // Luma 110, as the ground's.
  for (const std::array<int, 3>& colour :
       {std::array{80, 80, 80}, std::array{190, 83, 56}, std::array{110, 95, 186}}) {
    const Thing bag{60, 90, 24, 20, colour};
    const Take take{.things = {bag}};
    EXPECT_EQ(watch_.patch(ground, {}, take), mask(8, 8, {26})) << "the second frame alone: " << colour[0];
    EXPECT_EQ(watch_.patch(ground, take), mask(8, 8, {26})) << "that token was of both";
    EXPECT_EQ(watch_.patch(ground, take).count(), 0);
    EXPECT_EQ(watch_.patch(ground, {}, take), mask(8, 8, {26})) << "the first frame alone is without";
    EXPECT_EQ(watch_.patch(ground), mask(8, 8, {26}));
    EXPECT_EQ(watch_.patch(ground).count(), 0);
  }
}

TEST_F(SceneTest, AFarPersonIsKeptAllTheWay) {
  watch_.patch(street_);
  int seen = 0;
  for (int i = 0; i < 30; ++i) {
    const auto at = [&](int step) { return Thing{4 + 3 * step, 150, 14, 28, {170, 170, 170}}; };
    const base::GridMask kept = watch_.patch(street_, {.things = {at(2 * i)}}, {.things = {at(2 * i + 1)}});
    // It hides against boxes of its own brightness.
    if (has(kept, under(at(2 * i + 1), 250))) ++seen;
    EXPECT_LE(kept.count(), 8) << i;
  }
  EXPECT_GE(seen, 28);
}

TEST_F(SceneTest, LightThatDriftsIsSentWhenItHasGoneFarOnce) {
  watch_.patch(street_);
  watch_.count_anew();
  int whole_at = -1;
  for (int i = 1; i <= 100; ++i) {
    const Take dusk{.gain = 1 - 0.0025 * i};
    if (watch_.patch(street_, dusk).has_all() && whole_at < 0) whole_at = i;
    if (i == 50) {
      EXPECT_EQ(watch_.kept(), 0) << "an eighth darker";
    }
  }
  // By 0.15, at 0.0025 a patch; greys are cut off to whole levels.
  EXPECT_NEAR(whole_at, 60, 4);
  EXPECT_EQ(watch_.whole(), 1);
  EXPECT_EQ(watch_.kept(), 64) << "nothing but that";
}

TEST_F(SceneTest, AThingIsSeenInOtherLight) {
  watch_.patch(street_);
  const Thing bag{60, 90, 24, 20, {200, 60, 60}};
  const Take dusk{.gain = 0.9, .things = {bag}};
  EXPECT_EQ(watch_.patch(street_, dusk), under(bag, 100));
  EXPECT_EQ(watch_.patch(street_, {.gain = 1.05, .things = {bag}}).count(), 0) << "as it was, in other light";
}

TEST_F(SceneTest, ASoftShadowIsLightAndADarkOneIsNot) {
  for (const int darker : {9, 40}) {
    Scene policy(kNoAnchors, Scene::Stream::changes);
    std::mt19937 random(3);
    const Canvas before = street_.film({}, random);
    choose(policy, 0, {&before, &before});
    Canvas now = street_.film({}, random);
    // Darkest in the middle of a disc of 100 pixels.
    for (int y = 0; y < now.height; ++y)
      for (int x = 0; x < now.width; ++x) {
        const double from_edge = 1 - std::hypot(x - 112, y - 112) / 100;
        const int by = static_cast<int>(std::lround(darker * std::clamp(2 * from_edge, 0.0, 1.0)));
        for (int i = 3 * (y * now.width + x); i < 3 * (y * now.width + x) + 3; ++i)
          now.rgb[static_cast<std::size_t>(i)] =
              static_cast<std::uint8_t>(std::max(0, now.rgb[static_cast<std::size_t>(i)] - by));
      }
    const std::int64_t kept = choose(policy, 1, {&now, &now}).count();
    if (darker == 9) {
      EXPECT_EQ(kept, 0);
    } else {
      EXPECT_GE(kept, 16);
    }
  }
}

TEST_F(SceneTest, OfANightCamerasNoiseLittleIsKeptAndAThingIsSeenInIt) {
  const Take night{.gain = 0.5, .noise = 35};
  for (int i = 0; i < 10; ++i) watch_.patch(street_, night);
  watch_.count_anew();
  for (int i = 0; i < 40; ++i) watch_.patch(street_, night);
  EXPECT_LT(watch_.share(), 0.01);
  EXPECT_GT(policy_.noise(), 2) << "20 levels a pixel, 49 pixels a block, two frames";
  Take burglar = night;
  const Thing man{100, 60, 28, 70, {190, 190, 190}};
  burglar.things = {man};
  EXPECT_TRUE(has(watch_.patch(street_, burglar), under(man, 400)));
}

TEST_F(SceneTest, WindowsOfWhichMostChangedAreWhole) {
  const Street ground(1, 8, 0);
  watch_.patch(ground);
  // Nine groups of the second window, and ten of the third.
  const std::vector<Thing> things{{112, 0, 112, 28, {160, 160, 160}}, {112, 28, 112, 28, {60, 60, 60}},
                                  {112, 56, 28, 28, {160, 160, 160}}, {0, 112, 112, 28, {160, 160, 160}},
                                  {0, 140, 112, 28, {60, 60, 60}},    {0, 168, 56, 28, {160, 160, 160}}};
  std::vector<int> expected{4, 5, 6, 7, 12, 13, 14, 15, 20};
  for (int row = 4; row < 8; ++row)
    for (int column = 0; column < 4; ++column) expected.push_back(8 * row + column);
  EXPECT_EQ(watch_.patch(ground, {.things = things}), mask(8, 8, expected));
  // Of a tower of other windows, or of none, what changed alone: 9 groups, and 10.
  for (const int window : {0, 1, 8}) {
    PruningOptions options = kNoAnchors;
    options.grid.window = window;
    Scene policy(options, Scene::Stream::changes);
    Watch watch(policy);
    watch.patch(ground);
    EXPECT_EQ(watch.patch(ground, {.things = things}).count(), 19) << window;
  }
}

TEST_F(SceneTest, WhatTheModelDidNotTakeComesWithTheNextPatch) {
  watch_.patch(street_);
  policy_.lost(mask(8, 8, {11, 40}));
  EXPECT_EQ(watch_.patch(street_), mask(8, 8, {11, 40}));
  EXPECT_EQ(watch_.patch(street_).count(), 0) << "once";
  policy_.lost(mask(9, 9, {80}));
  EXPECT_EQ(watch_.patch(street_).count(), 0) << "of another size: ignored";
  policy_.lost(base::GridMask::all(8, 8));
  EXPECT_TRUE(watch_.patch(street_).has_all());
}

TEST(SceneSizeTest, AnotherSizeBeginsAnewAndGroupsOfOneBlockAreCompared) {
  for (const PatchGrid grid : {PatchGrid{14, 2}, PatchGrid{28, 1}, PatchGrid{7, 4}, PatchGrid{7, 1}}) {
    Scene policy({.grid = grid, .anchor_seconds = 1e9}, Scene::Stream::changes);
    const Canvas small(2, 2), wide(2, 3);
    Canvas bag(2, 3);
    bag.box(0, 0, 28, 14, 200);
    EXPECT_TRUE(choose(policy, 0, {&small, &small}).has_all());
    EXPECT_TRUE(choose(policy, 1, {&wide, &wide}).has_all());
    EXPECT_EQ(choose(policy, 2, {&wide, &wide}).count(), 0);
    const base::GridMask kept = choose(policy, 3, {&wide, &bag});
    EXPECT_TRUE(kept.has(0)) << grid.patch;
    EXPECT_FALSE(kept.has(kept.cells() - 1)) << grid.patch;
    EXPECT_TRUE(choose(policy, 4, {&small}).has_all());
  }
}

// A token of which the frames differ tells of a movement, and is made anew when that is over.
class SceneSettlesTest : public ::testing::Test {
 protected:
  Choice patch(const std::vector<Thing>& first, const std::vector<Thing>& second) {
    const Canvas a = street_.film({.things = first}, random_), b = street_.film({.things = second}, random_);
    const std::vector<SampledPicture> pictures = testing::still({&a, &b});
    changes_ = changes_policy_.choose(seconds_, pictures);
    return policy_.choose(seconds_++, pictures);
  }
  Choice patch(const std::vector<Thing>& things) { return patch(things, things); }

  const Thing thing_{.left = 88, .top = 88, .wide = 48, .high = 48, .colour = {250, 250, 250}};
  const base::GridMask below_ = under(thing_);
  Street street_{1};
  std::mt19937 random_{3};
  Scene policy_{kNoAnchors, Scene::Stream::lately};
  Scene changes_policy_{kNoAnchors, Scene::Stream::changes};
  Choice changes_;
  double seconds_ = 0;
};

TEST_F(SceneSettlesTest, WhatPassedWithinAPatchIsShownGoneWithTheNextAndSoIsWhatIsAround) {
  EXPECT_TRUE(patch({}).is_whole());
  const Choice passes = patch({thing_}, {});
  EXPECT_EQ(passes.encoded, below_);
  EXPECT_EQ(*passes.kept, below_);
  const Choice gone = patch({});
  EXPECT_TRUE(has(gone.encoded, below_)) << "nothing differs from what was seen last, but from its token";
  EXPECT_EQ(gone.encoded.count(), 16) << "two by two groups, and those around them";
  EXPECT_TRUE(gone.encoded.has(2, 2) && gone.encoded.has(5, 5));
  EXPECT_EQ(*gone.kept, below_);
  EXPECT_EQ(changes_.encoded, below_) << "what is around is in no stream of changes";
  EXPECT_EQ(*changes_.kept, below_);
  EXPECT_EQ(patch({}).encoded.count(), 0) << "once";
}

TEST_F(SceneSettlesTest, WhatCameBetweenPatchesIsShownOnce) {
  patch({});
  EXPECT_EQ(patch({thing_}).encoded, below_);
  EXPECT_EQ(patch({thing_}).encoded.count(), 0) << "both frames had it";
}

TEST_F(SceneSettlesTest, TheFirstPatchSettlesToo) {
  EXPECT_TRUE(patch({thing_}, {}).is_whole());
  EXPECT_TRUE(has(patch({}).encoded, below_));
  EXPECT_EQ(patch({}).encoded.count(), 0);
}

TEST_F(SceneSettlesTest, WhatHasNoRoomSettlesLater) {
  patch({});
  patch({thing_}, {});
  policy_.bound(0.04);
  base::GridMask shown = base::GridMask::none(8, 8);
  for (int i = 0; i < 2; ++i) {
    const Choice some = patch({});
    EXPECT_EQ(some.in_stream().count(), 2) << "of 64 groups";
    shown.add(some.in_stream());
  }
  EXPECT_EQ(shown, below_);
  EXPECT_EQ(patch({}).in_stream().count(), 0);
}

TEST_F(SceneSettlesTest, TheStreamKeepsWhatChangedForAWhileAndOfFourPatchesOneWhole) {
  EXPECT_TRUE(patch({}).is_whole());
  EXPECT_EQ(*patch({thing_}).kept, below_);
  EXPECT_EQ(changes_.in_stream(), below_);
  for (int i = 2; i < 4; ++i) {
    const Choice stands = patch({thing_});
    EXPECT_EQ(stands.encoded.count(), 0) << "it was seen";
    EXPECT_EQ(*stands.kept, below_) << "lately";
    EXPECT_EQ(changes_.in_stream().count(), 0);
  }
  const Choice whole = patch({thing_});
  EXPECT_EQ(whole.encoded.count(), 0);
  EXPECT_TRUE(whole.kept->has_all()) << "of four patches one";
  EXPECT_FALSE(whole.is_whole()) << "but no anchor";
  EXPECT_EQ(*patch({thing_}).kept, below_);
  EXPECT_EQ(patch({thing_}).kept->count(), 0) << "long ago";
  policy_.bound(0.5);
  for (int i = 7; i < 12; ++i) EXPECT_EQ(patch({thing_}).kept->count(), 0) << "no room for a whole picture";
}

TEST(StreamGroupsTest, KeepsWhatChangedForFourPatchesMoreAndOneOfFourWhole) {
  StreamGroups stream;
  EXPECT_TRUE(stream.keep(mask(2, 3, {0, 1, 2, 3, 4, 5})).has_all());
  EXPECT_EQ(stream.keep(mask(2, 3, {1})), mask(2, 3, {1}));
  EXPECT_EQ(stream.keep(mask(2, 3, {4})), mask(2, 3, {1, 4}));
  EXPECT_EQ(stream.keep(mask(2, 3, {})), mask(2, 3, {1, 4}));
  EXPECT_TRUE(stream.keep(mask(2, 3, {})).has_all());
  EXPECT_EQ(stream.keep(mask(2, 3, {})), mask(2, 3, {1, 4}));
  EXPECT_EQ(stream.keep(mask(2, 3, {})), mask(2, 3, {4}));
  EXPECT_EQ(stream.keep(mask(2, 3, {})), mask(2, 3, {}));
  EXPECT_TRUE(stream.keep(mask(2, 3, {0, 1, 2, 3, 4, 5})).has_all())
      << "and one that is whole is one of them";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(stream.keep(mask(2, 3, {})), mask(2, 3, {}));
  EXPECT_TRUE(stream.keep(mask(2, 3, {})).has_all());
  EXPECT_EQ(stream.keep(mask(1, 2, {0})), mask(1, 2, {0})) << "another size";
}

}  // namespace
}  // namespace vigil::prune
