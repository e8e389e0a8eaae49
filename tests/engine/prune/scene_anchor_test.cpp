// The whole picture comes at once when everything changed, and what goes on changing floods nobody.
#include <cmath>

#include <gtest/gtest.h>

#include "engine/prune/scene.h"
#include "tests/engine/prune/street.h"

namespace vigil::prune {
namespace {

using testing::choose;
using testing::Street;
using testing::Take;
using testing::Thing;
using testing::Watch;

/// No anchor of the clock but the first.
const PruningOptions kNoAnchors{.anchor_seconds = 1e9};
constexpr int kMinutes = 120;
/// What is filmed without change is not sent, but for a group here and there.
constexpr int kHardlyAny = 2;

class SceneAnchorTest : public ::testing::Test {
 protected:
  int random() { return static_cast<int>(watch_.random()() % 65'536); }
  /// Flakes, and somebody behind them who stands out less than they do.
  Take snow(int walker = -1) {
    Take take;
    if (walker >= 0) take.things.push_back({walker, 140, 20, 50, {50, 50, 60}});
    for (int i = 0; i < 16; ++i)
      take.things.push_back({random() % 224, random() % 224, 10, 10, {245, 245, 245}});
    return take;
  }
  /// A camera that trembles.
  Take somewhere() { return {.right = random() % 17 - 8, .down = random() % 17 - 8}; }

  Street street_{1};
  /// It spares an encoder always.
  Scene policy_{kNoAnchors, Scene::Stream::changes};
  Watch watch_{policy_};
};

struct Jump {
  const char* name;
  Take take;
};

TEST_F(SceneAnchorTest, ComeAtOnceAndOnceAfterACutAMoveAndAJumpOfTheLight) {
  const Jump jumps[] = {{"lamp on", {.offset = 40}}, {"lamp off", {.gain = 0.4}},
                        {"exposure", {.gain = 1.3}}, {"infrared", {.infrared = true}},
                        {"pan", {.right = 12}},      {"tilt", {.down = -20}},
                        {"zoom", {.zoom = 1.15}},    {"zoom out", {.zoom = 0.87}}};
  for (const Jump& jump : jumps) {
    Scene policy(kNoAnchors, Scene::Stream::changes);
    Watch watch(policy);
    for (int i = 0; i < 5; ++i) watch.patch(street_);
    watch.count_anew();
    // The second frame of the patch is the first one to show it.
    EXPECT_TRUE(watch.patch(street_, {}, jump.take).has_all()) << jump.name;
    // Tokens of that patch are of both sides of a move; light explains itself.
    watch.patch(street_, jump.take);
    for (int i = 0; i < 10; ++i) EXPECT_LE(watch.patch(street_, jump.take).count(), kHardlyAny) << jump.name;
    EXPECT_LE(watch.whole(), 2) << jump.name;
    EXPECT_EQ(watch.stale(street_, jump.take, 5).count(), 0) << jump.name;
    EXPECT_TRUE(watch.patch(street_).has_all()) << jump.name << ", and back";
  }
  const Street other(2);
  watch_.patch(street_);
  EXPECT_TRUE(watch_.patch(other).has_all()) << "a cut";
  EXPECT_EQ(watch_.patch(other).count(), 0);
}

TEST_F(SceneAnchorTest, ComeAfterAMoveOfACameraThatSeesLittle) {
  const Street sparse(3, 16, 28);
  Watch watch(policy_, 16);
  watch.patch(sparse);
  EXPECT_TRUE(watch.patch(sparse, {.right = 10, .down = 6}).has_all());
  EXPECT_EQ(watch.patch(sparse, {.right = 10, .down = 6}).count(), 0);
}

TEST_F(SceneAnchorTest, DoNotComeForALargeCarOrALampInACorner) {
  watch_.patch(street_);
  watch_.count_anew();
  for (int i = 0; i < 6; ++i) watch_.patch(street_, {.things = {{20 * i, 30, 90, 70, {220, 220, 220}}}});
  EXPECT_EQ(watch_.whole(), 0);
}

TEST_F(SceneAnchorTest, ComeAtTheirPlaceInTheClocksTime) {
  for (const double phase : {0.0, 0.25, 0.9}) {
    Scene policy({.anchor_seconds = 10, .anchor_phase = phase}, Scene::Stream::changes);
    Watch watch(policy);
    std::vector<double> anchors;
    for (int seconds = 0; seconds < 40; ++seconds)
      if (watch.patch(street_).has_all()) anchors.push_back(seconds);
    ASSERT_GE(anchors.size(), 4U);
    EXPECT_EQ(anchors[0], 0) << "the first patch is one";
    EXPECT_EQ(anchors[1], std::ceil(10 - 10 * phase));
    for (std::size_t i = 2; i < anchors.size(); ++i) EXPECT_EQ(anchors[i] - anchors[i - 1], 10);
  }
}

TEST_F(SceneAnchorTest, AreFewForACameraThatTremblesForMinutes) {
  watch_.patch(street_);
  watch_.count_anew();
  EXPECT_TRUE(watch_.patch(street_, somewhere(), {.right = 8}).has_all()) << "the first time at once";
  for (int i = 1; i < kMinutes; ++i) watch_.patch(street_, somewhere(), somewhere());
  EXPECT_LE(watch_.whole(), 3 + kMinutes / 10);
  EXPECT_GE(watch_.whole(), kMinutes / 15) << "but it is shown";
  EXPECT_LT(watch_.share(), 0.4);
  for (int i = 0; i < 12; ++i) watch_.patch(street_);
  // An edge that is a pixel off is within what a trembling edge explains.
  EXPECT_EQ(watch_.stale(street_, {}, 12).count(), 0) << "what it came to rest at is seen";
  watch_.count_anew();
  for (int i = 0; i < 10; ++i) watch_.patch(street_);
  EXPECT_LE(watch_.kept(), kHardlyAny) << "and all is quiet";
}

TEST_F(SceneAnchorTest, AreFewForALongPanAndItsEndIsSeen) {
  watch_.patch(street_);
  watch_.count_anew();
  // Around, as far as the street goes, for a minute.
  const auto at = [](int i) {
    return Take{.right = static_cast<int>(50 * std::sin(0.1 * i)),
                .down = static_cast<int>(50 * std::cos(0.1 * i))};
  };
  for (int i = 0; i < 60; ++i) watch_.patch(street_, at(2 * i), at(2 * i + 1));
  EXPECT_LE(watch_.whole(), 3 + 60 / 10);
  EXPECT_LT(watch_.share(), 0.45);
  for (int i = 0; i < 12; ++i) watch_.patch(street_, at(119));
  EXPECT_EQ(watch_.stale(street_, at(119), 8).count(), 0);
}

TEST_F(SceneAnchorTest, AreFewForAnExposureThatHuntsAndItsEndIsSeen) {
  watch_.patch(street_);
  watch_.count_anew();
  for (int i = 0; i < kMinutes; ++i) {
    const Take take{.gain = i / 3 % 2 == 0 ? 1.4 : 0.9};
    const bool whole = watch_.patch(street_, take).has_all();
    if (i == 0) {
      EXPECT_TRUE(whole) << "the first time at once";
    }
  }
  EXPECT_LE(watch_.whole(), 3 + kMinutes / 10);
  EXPECT_LT(watch_.share(), 0.4);
  const Take rest{.gain = 0.65};
  for (int i = 0; i < 11; ++i) watch_.patch(street_, rest);
  // Light that moved the picture by less than 0.15 of its brightness is not shown.
  EXPECT_EQ(watch_.stale(street_, rest, 20).count(), 0);
  watch_.count_anew();
  for (int i = 0; i < 20; ++i) watch_.patch(street_, rest);
  EXPECT_LE(watch_.kept(), kHardlyAny);
}

TEST_F(SceneAnchorTest, SnowIsBoundedAndAPersonInItIsSeen) {
  watch_.patch(street_);
  for (int i = 0; i < 30; ++i) watch_.patch(street_, snow(), snow());
  watch_.count_anew();
  int seen = 0, walked = 0;
  for (int i = 0; i < kMinutes; ++i) {
    const int walker = i >= 40 && i < 70 ? 6 * (i - 40) : -1;
    const Take second = walker < 0 ? snow() : snow(walker + 3);
    watch_.patch(street_, walker < 0 ? snow() : snow(walker), second);
    if (walker < 0) continue;
    ++walked;
    // The group of its middle.
    if (!watch_.stale(street_, second, 8).has(165 / 28, (walker + 13) / 28)) ++seen;
  }
  EXPECT_LT(watch_.share(), 0.42);
  EXPECT_GE(seen, walked * 8 / 10);
  for (int i = 0; i < 12; ++i) watch_.patch(street_);
  EXPECT_EQ(watch_.stale(street_, {}, 8).count(), 0) << "no flake is left";
}

// Choosing from what changes nearly everywhere saves little, and loses what does not come.
TEST_F(SceneAnchorTest, WhileTheEncoderIsNotBehindItGetsAllOfASnowfallAndOfACameraThatTrembles) {
  Scene scene(kNoAnchors, Scene::Stream::lately);
  Watch watch(scene);
  watch.patch(street_);
  for (int i = 0; i < kMinutes; ++i) {
    const Take second = snow(6 * (i % 30) + 3);
    watch.patch(street_, snow(6 * (i % 30)), second);
    ASSERT_EQ(watch.stale(street_, second, 10).count(), 0) << i;
  }
  EXPECT_GT(watch.share(), 0.6);
  for (int i = 0; i < 60; ++i) {
    const Take second = somewhere();
    watch.patch(street_, somewhere(), second);
    ASSERT_EQ(watch.stale(street_, second, 12).count(), 0) << i;
  }
  scene.spare(true);
  watch.count_anew();
  for (int i = 0; i < kMinutes; ++i) watch.patch(street_, snow(), snow());
  EXPECT_LT(watch.share(), 0.5) << "it falls behind";
  scene.spare(false);
  for (int i = 0; i < 3; ++i) watch.patch(street_);
  EXPECT_EQ(watch.stale(street_, {}, 8).count(), 0) << "what it was not sent meanwhile comes at once";
  watch.count_anew();
  for (int i = 0; i < 10; ++i) watch.patch(street_);
  EXPECT_LE(watch.kept(), kHardlyAny) << "and all is quiet";
}

TEST_F(SceneAnchorTest, NoPatchHasMoreThanItsBoundAndWhatIsLeftOutComesLater) {
  watch_.patch(street_);
  // Rows of boxes, each of which fills most of some windows of the tower.
  const auto crowd = [](int i) {
    Take take;
    const int grey = i % 2 == 0 ? 200 : 30;
    for (int row = 0; row < 3; ++row) take.things.push_back({0, 28 * row, 112, 28, {grey, grey, grey}});
    return take;
  };
  policy_.bound(0.2);
  for (int i = 0; i < 20; ++i) {
    const base::GridMask kept = watch_.patch(street_, crowd(i));
    EXPECT_LE(kept.count(), 12) << i;
    EXPECT_GE(kept.count(), 8) << "what may be sent is";
  }
  const Take rest = crowd(0);
  for (int i = 0; i < 5; ++i) watch_.patch(street_, rest);
  EXPECT_EQ(watch_.stale(street_, rest, 8).count(), 0);
  // What was lost comes with the next one, whatever the bound.
  policy_.lost(base::GridMask::all(8, 8));
  EXPECT_TRUE(watch_.patch(street_, rest).has_all());
  policy_.bound(1);
  EXPECT_GE(watch_.patch(street_, crowd(1)).count(), 12) << "all of it again";
}

TEST_F(SceneAnchorTest, ABusyStreetIsKeptForAMinuteBeforeItIsBoundedAndIsShownThen) {
  watch_.patch(street_);
  watch_.count_anew();
  // Two fifths of the groups change every time.
  const auto crowd = [](int i) {
    Take take;
    const int grey = i % 2 == 0 ? 200 : 30;
    for (int row = 0; row < 8; ++row)
      take.things.push_back({28 * (row % 6), 28 * row, 84, 28, {grey, grey, grey}});
    return take;
  };
  for (int i = 0; i < 40; ++i) watch_.patch(street_, crowd(i));
  EXPECT_EQ(watch_.whole(), 0);
  EXPECT_GE(watch_.kept(), 40 * 24) << "all of it";
  for (int i = 0; i < 100; ++i) watch_.patch(street_, crowd(i));
  watch_.count_anew();
  for (int i = 0; i < 60; ++i) watch_.patch(street_, crowd(i));
  EXPECT_LT(watch_.share(), 0.32);
  for (int i = 0; i < 3; ++i) watch_.patch(street_, crowd(0));
  EXPECT_EQ(watch_.stale(street_, crowd(0), 8).count(), 0);
}

}  // namespace
}  // namespace vigil::prune
