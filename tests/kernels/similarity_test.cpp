#include "kernels/similarity/similarity.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/similarity/similarity_reference.h"
#include "tests/kernels/draft_golden.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

/// Of a cosine: products of thousands of numbers in f32. A spread is a mean of squares of what is at most 2
/// apart.
constexpr double kCosine = 2e-6, kSpread = 4e-6;

class SimilarityTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, SimilarityTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

struct Picture {
  TestMatrix embeddings;
  std::vector<std::int32_t> places;

  PlacedTokens view() const { return {embeddings.view(), places.data()}; }
};

Picture none(DType dtype, std::int64_t width) {
  return {TestMatrix(dtype, 0, width), {}};
}

struct Found {
  std::vector<float> to_before, spread;
};

/// Runs `token_similarity` on the device under test.
Found compare(Stream& stream, const Picture& now, const Picture& before, std::int64_t rows,
              std::int64_t columns) {
  const std::int64_t tokens = now.embeddings.rows();
  TestMatrix past(DType::f32, 1, tokens), apart(DType::f32, 1, tokens);
  OnDevice there(stream, past), and_there(stream, apart);
  const DeviceArray<std::int32_t> places(stream, now.places), places_before(stream, before.places);
  token_similarity(stream, {OnDevice(stream, now.embeddings), places.data()},
                   {OnDevice(stream, before.embeddings), places_before.data()}, rows, columns,
                   there.view().row<float>(0), and_there.view().row<float>(0));
  there.fetch();
  and_there.fetch();
  Found found;
  for (std::int64_t i = 0; i < tokens; ++i) {
    found.to_before.push_back(past.get(0, i));
    found.spread.push_back(apart.get(0, i));
  }
  return found;
}

void expect_near(const std::vector<float>& found, const std::vector<double>& expected, double bound,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(found[i])) << what << ' ' << i << ": " << found[i];
    } else {
      EXPECT_NEAR(found[i], expected[i], bound) << what << ' ' << i;
    }
  }
}

std::vector<double> wide(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Its embeddings are whole numbers that bf16 has, too.
TEST_P(SimilarityTest, IsWhatNumpyMakesOfTheEquations) {
  int known = 0, unknown = 0;
  for (const DraftGolden& now : DraftGoldenFile::read()) {
    Picture before = none(GetParam(), now.width);
    Stream stream = test_stream(2);
    for (const DraftGolden::Frame& frame : now.frames) {
      Picture picture{TestMatrix(GetParam(), static_cast<std::int64_t>(frame.places.size()), now.width),
                      frame.places};
      for (std::int64_t i = 0; i < picture.embeddings.rows(); ++i)
        for (std::int64_t j = 0; j < now.width; ++j)
          picture.embeddings.set(i, j, frame.embeddings[static_cast<std::size_t>(i * now.width + j)]);
      const Found found = compare(stream, picture, before, now.rows, now.columns);
      expect_near(found.to_before, wide(frame.to_before), kCosine, now.name + " before");
      expect_near(found.spread, wide(frame.spread), kSpread, now.name + " spread");
      for (const float each : frame.to_before) ++(std::isnan(each) ? unknown : known);
      before = std::move(picture);
    }
  }
  EXPECT_GT(known, 300);
  EXPECT_GT(unknown, 100);
}

/// Some places of a grid: each with this chance in percent.
Picture some(DType dtype, std::int64_t rows, std::int64_t columns, std::int64_t width, int percent,
             Random& random, std::int64_t gap) {
  std::vector<std::int32_t> places;
  for (std::int64_t place = 0; place < rows * columns; ++place)
    if (random.below(100) < percent) places.push_back(static_cast<std::int32_t>(place));
  const auto tokens = static_cast<std::int64_t>(places.size());
  TestMatrix embeddings = TestMatrix::random(dtype, tokens, width, random, 3, gap);
  return {std::move(embeddings), std::move(places)};
}

TEST_P(SimilarityTest, AgreesWithTheReferenceAtAwkwardSizes) {
  struct Shape {
    std::int64_t rows, columns, width, gap;
  };
  std::uint64_t seed = 1;
  for (const Shape& now : {Shape{1, 1, 1, 0}, Shape{5, 5, 4, 0}, Shape{6, 4, 20, 3}, Shape{1, 23, 255, 1},
                           Shape{17, 2, 256, 0}, Shape{11, 16, 1028, 4}, Shape{32, 32, 896, 0}})
    for (const int percent : {100, 55, 8}) {
      Random random(seed++);
      const Picture before = some(GetParam(), now.rows, now.columns, now.width, 70, random, now.gap);
      Picture picture = some(GetParam(), now.rows, now.columns, now.width, percent, random, now.gap);
      // As films are: much of it is as it was.
      for (std::size_t i = 0; i < picture.places.size(); ++i)
        for (std::size_t k = 0; k < before.places.size(); ++k)
          if (picture.places[i] == before.places[k] && i % 3 != 0)
            for (std::int64_t j = 0; j < now.width; ++j) {
              const float was = before.embeddings.get(static_cast<std::int64_t>(k), j);
              picture.embeddings.set(static_cast<std::int64_t>(i), j, was + 0.3F * random.number());
            }
      const auto expected = reference::token_similarity(picture.view(), before.view(), now.columns);
      Stream stream = test_stream(2);
      const Found found = compare(stream, picture, before, now.rows, now.columns);
      const std::string what = std::to_string(now.rows) + "x" + std::to_string(now.columns) + " of " +
                               std::to_string(now.width) + ", " + std::to_string(percent) + " % ";
      expect_near(found.to_before, expected.to_before, kCosine, what + "before");
      expect_near(found.spread, expected.spread, kSpread, what + "spread");
    }
}

/// All places of a grid, each the same.
Picture all_of(DType dtype, std::int64_t places, std::int64_t width, float value) {
  Picture picture{TestMatrix(dtype, places, width), {}};
  for (std::int64_t i = 0; i < places; ++i) {
    picture.places.push_back(static_cast<std::int32_t>(i));
    for (std::int64_t j = 0; j < width; ++j) picture.embeddings.set(i, j, value);
  }
  return picture;
}

TEST_P(SimilarityTest, WhatHasNoDirectionIsNotKnownAndCountsForNoOther) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  Random random(3);
  Picture picture = some(GetParam(), 5, 10, 300, 100, random, 0);
  Picture before = some(GetParam(), 5, 10, 300, 100, random, 0);
  const auto spoil = [](Picture& of, std::int64_t token, float all, float last) {
    for (std::int64_t j = 0; j < 300; ++j) of.embeddings.set(token, j, j == 299 ? last : all);
  };
  // Nothing; what is no number; without end; squares beyond f32, and beyond what is taken; too small ones.
  const std::vector<std::int64_t> spoilt{0, 3, 11, 22, 33, 49};
  const std::vector<std::pair<float, float>> with{{0.0F, -0.0F}, {1, std::nanf("")}, {1, -kInfinite},
                                                  {1e25F, 0},    {1e15F, 1},         {1e-18F, 0}};
  for (std::size_t i = 0; i < spoilt.size(); ++i) spoil(picture, spoilt[i], with[i].first, with[i].second);
  // Others, of the picture before.
  for (std::size_t i = 0; i < spoilt.size(); ++i)
    spoil(before, spoilt[i] == 49 ? 48 : spoilt[i] + 1, with[i].first, with[i].second);
  // Those that are large and small and have one.
  spoil(picture, 5, 1e13F, 0);
  spoil(before, 5, 1e-14F, 0);
  const auto expected = reference::token_similarity(picture.view(), before.view(), 10);
  Stream stream = test_stream(2);
  const Found found = compare(stream, picture, before, 5, 10);
  expect_near(found.to_before, expected.to_before, kCosine, "before");
  expect_near(found.spread, expected.spread, kSpread, "spread");
  for (std::size_t i = 0; i < found.spread.size(); ++i) {
    const bool is_spoilt =
        std::find(spoilt.begin(), spoilt.end(), static_cast<std::int64_t>(i)) != spoilt.end();
    EXPECT_EQ(std::isnan(found.spread[i]), is_spoilt) << i;
  }
  EXPECT_NEAR(found.to_before[5], 1, kCosine);
  // Exactly as if they were pruned: the others' spreads are those of a picture without them.
  Picture without{TestMatrix(GetParam(), 50 - static_cast<std::int64_t>(spoilt.size()), 300), {}};
  std::vector<float> others;
  for (std::int64_t i = 0; i < 50; ++i) {
    if (std::find(spoilt.begin(), spoilt.end(), i) != spoilt.end()) continue;
    for (std::int64_t j = 0; j < 300; ++j)
      without.embeddings.set(static_cast<std::int64_t>(without.places.size()), j,
                             picture.embeddings.get(i, j));
    without.places.push_back(static_cast<std::int32_t>(i));
    others.push_back(found.spread[static_cast<std::size_t>(i)]);
  }
  expect_near(compare(stream, without, before, 5, 10).spread, wide(others), 1e-9, "pruned");
}

TEST_P(SimilarityTest, WhatIsAlikeHasNoSpreadAndNoneIsNearNothing) {
  const Picture picture = all_of(GetParam(), 7 * 8, 520, 1.75F), same = all_of(GetParam(), 7 * 8, 520, -3.5F);
  Stream stream = test_stream(2);
  const Found found = compare(stream, picture, same, 7, 8);
  for (std::size_t i = 0; i < found.spread.size(); ++i) {
    EXPECT_NEAR(found.to_before[i], -1, kCosine) << "the opposite";
    EXPECT_LT(found.spread[i], 1e-12) << i;
  }
  // No picture before, and one that lies elsewhere.
  Picture elsewhere{TestMatrix(GetParam(), 1, 520), {55}};
  for (std::int64_t j = 0; j < 520; ++j) elsewhere.embeddings.set(0, j, 1);
  Picture few{TestMatrix(GetParam(), 2, 520), {0, 54}};
  for (std::int64_t j = 0; j < 520; ++j)
    for (const std::int64_t i : {0, 1}) few.embeddings.set(i, j, 2);
  for (const Picture& before : {none(GetParam(), 520), elsewhere}) {
    const Found alone = compare(stream, few, before, 7, 8);
    for (const std::size_t i : {0U, 1U}) {
      EXPECT_TRUE(std::isnan(alone.to_before[i]));
      EXPECT_EQ(alone.spread[i], 0) << "alone in its crop";
    }
  }
}

// Crops are of 5 x 5 places from the first on: what lies beyond a crop's edge changes nothing in it.
TEST_P(SimilarityTest, CropsEndAtTheirEdges) {
  Random random(5);
  const Picture picture = some(GetParam(), 12, 13, 40, 100, random, 0);
  Stream stream = test_stream(2);
  const Found before = compare(stream, picture, none(GetParam(), 40), 12, 13);
  const auto crop = [](std::int64_t place) { return place / 13 / 5 * 3 + place % 13 / 5; };
  for (const std::int64_t changed : {0, 4 * 13 + 4, 5 * 13 + 4, 9 * 13 + 9, 10 * 13 + 12, 11 * 13 + 12}) {
    Picture other = picture;
    for (std::int64_t j = 0; j < 40; ++j) other.embeddings.set(changed, j, 3 * random.number());
    const Found found = compare(stream, other, none(GetParam(), 40), 12, 13);
    for (std::int64_t i = 0; i < 12 * 13; ++i) {
      const auto at = static_cast<std::size_t>(i);
      EXPECT_EQ(found.spread[at] != before.spread[at], crop(i) == crop(changed)) << i << " by " << changed;
    }
  }
}

TEST_P(SimilarityTest, ThreadsChangeNothing) {
  Random random(9);
  const Picture picture = some(GetParam(), 24, 31, 97, 80, random, 2);
  const Picture before = some(GetParam(), 24, 31, 97, 80, random, 5);
  Stream one = test_stream(1), four = test_stream(4);
  const Found alone = compare(one, picture, before, 24, 31), shared = compare(four, picture, before, 24, 31);
  expect_near(alone.to_before, wide(shared.to_before), 0, "before");
  EXPECT_EQ(alone.spread, shared.spread);
}

TEST_P(SimilarityTest, WhatDoesNotFitIsRefused) {
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  Stream stream = Stream::cpu(1);
  const Picture four = all_of(GetParam(), 4, 6, 1), nothing = none(GetParam(), 6);
  float to[8] = {};
  const auto run = [&](const PlacedTokens& tokens, const PlacedTokens& before, std::int64_t rows,
                       std::int64_t columns) {
    token_similarity(stream, tokens, before, rows, columns, to, to + 4);
  };
  EXPECT_NO_THROW(run(four.view(), four.view(), 2, 2));
  EXPECT_THROW(run(four.view(), nothing.view(), 1, 3), std::invalid_argument) << "more tokens than places";
  EXPECT_THROW(run(nothing.view(), four.view(), 1, 3), std::invalid_argument);
  EXPECT_THROW(run(four.view(), nothing.view(), -2, -2), std::invalid_argument);
  EXPECT_THROW(run(four.view(), nothing.view(), 1LL << 40, 1LL << 40), std::invalid_argument);
  EXPECT_THROW(run(four.view(), all_of(other, 4, 6, 1).view(), 2, 2), std::invalid_argument);
  EXPECT_THROW(run(four.view(), all_of(GetParam(), 4, 5, 1).view(), 2, 2), std::invalid_argument);
  PlacedTokens integers = four.view(), narrow = four.view();
  integers.embeddings.dtype = DType::i32;
  narrow.embeddings.stride = 5;
  EXPECT_THROW(run(integers, nothing.view(), 2, 2), std::invalid_argument);
  EXPECT_THROW(run(narrow, nothing.view(), 2, 2), std::invalid_argument);
  EXPECT_THROW(run(four.view(), narrow, 2, 2), std::invalid_argument);
  EXPECT_NO_THROW(token_similarity(stream, nothing.view(), nothing.view(), 0, 0, nullptr, nullptr));
  // Of no elements, nothing has a direction.
  to[0] = to[4] = 5;
  run(all_of(GetParam(), 4, 0, 1).view(), nothing.view(), 2, 2);
  EXPECT_TRUE(std::isnan(to[0]));
  EXPECT_TRUE(std::isnan(to[4]));
}

}  // namespace
}  // namespace vigil::kernels
