#include "engine/prune/salience.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/prune/scene.h"

namespace vigil::prune {
namespace {

using testing::Canvas;
using testing::still;
using Tokens = std::vector<std::int32_t>;

/// The street of tools/golden_salience.py, to the last bit.
class DrawnStreet {
 public:
  static constexpr int kRows = 4, kColumns = 6, kHeight = 28 * kRows, kWidth = 28 * kColumns;

  Canvas draw(int frame) const {
    Canvas picture(kRows, kColumns);
    std::uint8_t* to = picture.rgb.data();
    const std::vector<Thing> all = things(frame);
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        const int number = y * kWidth + x;
        int grey = 80 + static_cast<int>(hash(number / 7) % 60) + frame / 100;
        if (y < 28 && x < 84) grey += static_cast<int>(hash(number / 4 + 131 * frame) / 64 % 50) - 25;
        for (const Thing& thing : all)
          if (x >= thing.left && x < thing.left + thing.wide && y >= thing.top && y < thing.top + thing.high)
            grey = thing.grey;
        grey += static_cast<int>(hash(number + 977 * frame) / 4096 % 7) - 3;
        for (const int value : {grey + 12, grey, grey - 9})
          *to++ = static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
      }
    return picture;
  }

 private:
  struct Thing {
    int left, top, wide, high, grey;
  };
  static std::vector<Thing> things(int frame) {
    std::vector<Thing> all;
    if (frame >= 400 && frame < 440) all.push_back({4 * (frame - 400) - 20, 30, 18, 50, 30});
    if (frame >= 440 && frame < 520) all.push_back({140, 30, 18, 50, 30});
    if (frame >= 520 && frame < 540) all.push_back({140, 30 + 4 * (frame - 520), 18, 50, 30});
    if (frame >= 900 && frame < 930) all.push_back({200 - 8 * (frame - 900), 6, 40, 20, 220});
    if (frame >= 1200) all.push_back({28, 84, 56, 28, 200});
    return all;
  }

  static constexpr int kHashes = 8191;
  std::uint32_t hash(int number) const { return hashes_[static_cast<std::size_t>(number % kHashes)]; }
  std::unique_ptr<std::uint32_t[]> hashes_ = [] {
    auto hashes = std::make_unique<std::uint32_t[]>(kHashes);
    for (std::uint32_t i = 0; i < kHashes; ++i) {
      std::uint32_t h = i * 2654435761U;
      h ^= h >> 15U;
      h *= 2246822507U;
      hashes[i] = h ^ h >> 13U;
    }
    return hashes;
  }();
};

Tokens look(Salience& salience, double seconds, const std::vector<const Canvas*>& pictures) {
  return salience.look(seconds, 1, still(pictures)).list();
}

// Buckets of histograms may decide otherwise where a token is within 8 % of the threshold, and nowhere else.
TEST(SalienceTest, TheSameTokensStandOutAsByNumpy) {
  std::ifstream golden(VIGIL_SOURCE_DIR "/tests/golden/salience.txt");
  const DrawnStreet street;
  Salience salience({});
  int either = 0, both = 0, clear = 0, patches = 0;
  for (std::string line; std::getline(golden, line); ++patches) {
    std::istringstream words(line);
    double seconds = -1;
    words >> seconds;
    ASSERT_EQ(seconds, patches);
    std::map<std::int32_t, double> ratios;
    std::int32_t token = 0;
    for (double ratio = 0; words >> token >> ratio;) ratios[token] = ratio;
    const Canvas first = street.draw(2 * patches), second = street.draw(2 * patches + 1);
    const base::GridMask mask = salience.look(seconds, 1, still({&first, &second}));
    ASSERT_EQ(mask.cells(), DrawnStreet::kRows * DrawnStreet::kColumns);
    for (std::int32_t i = 0; i < mask.cells(); ++i) {
      const double ratio = ratios.contains(i) ? ratios[i] : 0;
      if (ratio > 1.08) {
        EXPECT_TRUE(mask.has(i)) << patches << ' ' << i << ' ' << ratio;
      } else if (ratio < 0.92) {
        EXPECT_FALSE(mask.has(i)) << patches << ' ' << i << ' ' << ratio;
      }
      clear += ratio > 1.08 ? 1 : 0;
      either += ratio > 1 || mask.has(i) ? 1 : 0;
      both += ratio > 1 && mask.has(i) ? 1 : 0;
    }
  }
  EXPECT_EQ(patches, 780);
  EXPECT_GT(clear, 300);
  EXPECT_GT(both, 0.9 * either) << both << " of " << either;
}

/// A still picture of 8 x 8 groups with a camera's noise, and a box of a group's size where there is one.
class Yard {
 public:
  Yard() {
    for (int i = 0; i < 16; ++i) noisy_.emplace_back(8, 8).noise(3, random_);
  }
  Canvas film(int box_group = -1, int light = 0) {
    Canvas picture = noisy_[random_() % noisy_.size()];
    if (box_group >= 0) picture.box(28 * (box_group % 8), 28 * (box_group / 8), 28, 28, 200);
    if (light != 0) picture.light(light);
    return picture;
  }
  Tokens look(Salience& salience, double seconds, int box_group = -1, int light = 0) {
    const Canvas first = film(box_group, light), second = film(box_group, light);
    return prune::look(salience, seconds, {&first, &second});
  }

 private:
  std::mt19937 random_{3};
  std::vector<Canvas> noisy_;
};

bool has(const Tokens& tokens, std::int32_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

TEST(SalienceTest, WhoIsThereFromTheFirstPatchOnStandsOut) {
  Yard yard;
  Salience salience({});
  int seen = 0, others = 0;
  for (int patch = 0; patch < 8; ++patch) {
    // Somebody walks on between the two frames of a patch.
    const Canvas first = yard.film(8 * 4 + patch % 8), second = yard.film(8 * 4 + (patch + 1) % 8);
    const Tokens tokens = look(salience, patch, {&first, &second});
    seen += has(tokens, 8 * 4 + (patch + 1) % 8) || has(tokens, 8 * 4 + patch % 8) ? 1 : 0;
    for (const std::int32_t token : tokens) others += token / 8 != 4 ? 1 : 0;
  }
  EXPECT_EQ(seen, 8);
  EXPECT_EQ(others, 0);
}

TEST(SalienceTest, OfWhatNeverChangesNothingStandsOut) {
  Salience salience({});
  const Canvas grey(3, 5);
  for (int patch = 0; patch < 20; ++patch)
    EXPECT_EQ(look(salience, patch, {&grey, &grey}), Tokens{}) << patch;
  // The first frame of all is compared with nothing.
  Salience single({});
  const Canvas other(3, 5, 200);
  EXPECT_EQ(look(single, 0, {&grey}), Tokens{});
  EXPECT_EQ(*std::max_element(single.of_tokens().begin(), single.of_tokens().end()), 0);
  look(single, 1, {&other});
  EXPECT_GT(single.of_tokens().front(), 1) << "100 beside a median of 0 and 100";
}

// What stands still is usual after a minute, and where it was is not, when it leaves.
TEST(SalienceTest, WhatStandsLongIsUsualAndItsLeavingStandsOut) {
  Yard yard;
  Salience salience({});
  int patch = 0;
  for (; patch < 120; ++patch) yard.look(salience, patch);
  EXPECT_TRUE(has(yard.look(salience, patch++, 20), 20));
  for (; patch < 150; ++patch) EXPECT_TRUE(has(yard.look(salience, patch, 20), 20)) << patch;
  for (; patch < 600; ++patch) yard.look(salience, patch, 20);
  EXPECT_LT(salience.of_tokens()[20], 2);
  EXPECT_TRUE(has(yard.look(salience, patch, -1), 20));
}

// A place where much went on for an hour, and nothing for another: what comes there then stands out far.
TEST(SalienceTest, WhatWasUsualLongAgoIsForgotten) {
  Yard yard;
  Salience salience({});
  double at = 0;
  for (int patch = 0; patch < 360; ++patch, at += 10) yard.look(salience, at, patch % 2 == 0 ? 20 : -1);
  EXPECT_LT(salience.of_tokens()[20], 3);
  for (int patch = 0; patch < 300; ++patch, at += 10) yard.look(salience, at);
  EXPECT_TRUE(has(yard.look(salience, at, 20), 20));
  EXPECT_GT(salience.of_tokens()[20], 20);
}

// A lamp that is switched on again and again: never more than a share, and those that differ most.
TEST(SalienceTest, WhatChangesEverythingIsBounded) {
  Yard yard;
  Salience salience({});
  std::vector<std::size_t> counts;
  std::size_t most = 0, all = 0;
  for (int patch = 0; patch < 400; ++patch) {
    // Everywhere, and most of all at one place. From 200 on it alternates.
    const bool is_lit = patch >= 200 && patch / 4 % 2 == 1;
    const Tokens tokens = yard.look(salience, patch, is_lit ? 9 : -1, is_lit ? 10 + patch % 40 : 0);
    if (patch >= 200) {
      counts.push_back(tokens.size());
      all += tokens.size();
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const float least = salience.of_tokens()[static_cast<std::size_t>(tokens[i])];
      EXPECT_GT(least, salience.threshold());
    }
    if (!tokens.empty() && tokens.size() < 64) {
      float least = std::numeric_limits<float>::max(), others = 0;
      for (std::int32_t token = 0; token < 64; ++token) {
        const float each = salience.of_tokens()[static_cast<std::size_t>(token)];
        if (has(tokens, token)) {
          least = std::min(least, each);
        } else {
          others = std::max(others, each);
        }
      }
      EXPECT_GE(least, others) << patch;
    }
  }
  for (std::size_t i = 0; i + 8 <= counts.size(); ++i) {
    std::size_t sum = 0;
    for (std::size_t k = i; k < i + 8; ++k) sum += counts[k];
    most = std::max(most, sum);
  }
  EXPECT_LE(most, 2 * 8 * 64 / 5);
  EXPECT_GT(most, 64U) << "it is allowed much for a while";
  EXPECT_LE(all, 200U * 64 / 5 + 8 * 64 / 5);
}

TEST(SalienceTest, APictureOfAnotherSizeBeginsAnew) {
  Yard yard;
  Salience salience({}), fresh({});
  for (int patch = 0; patch < 30; ++patch) yard.look(salience, patch);
  const Canvas grey(3, 5), box = [] {
    Canvas picture(3, 5);
    picture.box(28, 28, 28, 28, 180);
    return picture;
  }();
  for (int patch = 30; patch < 40; ++patch) {
    const Canvas* second = patch % 3 == 0 ? &box : &grey;
    const base::GridMask mask = salience.look(patch, 1, still({&grey, second}));
    EXPECT_EQ(mask, fresh.look(patch, 1, still({&grey, second}))) << patch;
    EXPECT_EQ(mask.height(), 3);
    EXPECT_EQ(mask.width(), 5);
    EXPECT_EQ(salience.of_tokens(), fresh.of_tokens());
  }
}

TEST(SalienceTest, PatchesOfOddEdgesAreComparedPixelByPixel) {
  // Groups of 28 pixels: two patches of 14, or four of 7.
  Salience even({14, 2}), odd({7, 4});
  Yard yard;
  for (int patch = 0; patch < 60; ++patch) {
    const int where = patch == 50 ? 27 : -1;
    const Canvas first = yard.film(where), second = yard.film(where);
    const base::GridMask by_even = even.look(patch, 1, still({&first, &second}));
    const base::GridMask by_odd = odd.look(patch, 1, still({&first, &second}));
    EXPECT_EQ(by_odd.cells(), 64);
    if (where > 0) {
      EXPECT_TRUE(by_even.has(27));
      EXPECT_TRUE(by_odd.has(27));
      EXPECT_NEAR(odd.of_tokens()[27] / even.of_tokens()[27], 1, 0.4) << "noise is more, pixel by pixel";
    }
  }
}

TEST(SalienceTest, AClockThatJumpsSpoilsNothing) {
  Yard yard;
  Salience salience({});
  double at = 0;
  for (int patch = 0; patch < 200; ++patch) yard.look(salience, at++);
  // After an hour somebody has put a box there: it is seen once, and is how the picture is from then on.
  at += 3600;
  EXPECT_TRUE(has(yard.look(salience, at++, 20), 20));
  yard.look(salience, at++, 20);
  EXPECT_LT(salience.of_tokens()[20], 2);
  for (int patch = 0; patch < 100; ++patch) yard.look(salience, at++, 20);
  // Back by days: no time has passed.
  at -= 1e6;
  EXPECT_TRUE(has(yard.look(salience, at++, 30), 30));
  EXPECT_TRUE(has(yard.look(salience, at++, 30), 30));
  for (int patch = 0; patch < 20; ++patch) yard.look(salience, at++, 30);
  EXPECT_TRUE(has(yard.look(salience, at++, 40), 40));
  for (const double odd : {1e300, std::numeric_limits<double>::infinity(), -1e300,
                           std::numeric_limits<double>::quiet_NaN(), 0.0, 0.0, 1.0}) {
    const Tokens tokens = yard.look(salience, odd, 50);
    EXPECT_LE(tokens.size(), 64U);
    for (const float each : salience.of_tokens()) EXPECT_GE(each, 0) << "a number, at " << odd;
  }
  for (int patch = 2; patch < 90; ++patch) yard.look(salience, patch, 50);
  EXPECT_TRUE(has(yard.look(salience, 90, 51), 51)) << "it goes on";
}

TEST(SalienceTest, PicturesThatAreNoneAreRefused) {
  Salience salience({});
  const Canvas one(2, 2), other(2, 3);
  EXPECT_THROW(salience.look(0, 1, {}), std::invalid_argument);
  EXPECT_THROW(look(salience, 0, {&one, &other}), std::invalid_argument);
  Canvas odd(2, 2);
  odd.width = 55;
  EXPECT_THROW(look(salience, 0, {&odd}), std::invalid_argument);
  EXPECT_NO_THROW(look(salience, 0, {&one, &one}));
}

}  // namespace
}  // namespace vigil::prune
