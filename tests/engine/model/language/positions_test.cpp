#include "engine/model/language/positions.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::model {
namespace {

TEST(PositionBuilderTest, TextCountsUpOnAllAxes) {
  PositionBuilder builder;
  builder.text(3);
  EXPECT_EQ(builder.positions(), (std::vector<Position>{{0, 0, 0}, {1, 1, 1}, {2, 2, 2}}));
  EXPECT_EQ(builder.next(), 3);
}

TEST(PositionBuilderTest, AGridStartsWhereTheTextStoppedAndTheTextGoesOnBesideIt) {
  PositionBuilder builder;
  builder.text(2);
  builder.grid(2, 1, 3, 4);
  builder.text(1);
  EXPECT_EQ(builder.positions(), (std::vector<Position>{{0, 0, 0},
                                                        {1, 1, 1},  //
                                                        {2, 2, 2},
                                                        {2, 2, 3},
                                                        {2, 2, 4},  //
                                                        {6, 2, 2},
                                                        {6, 2, 3},
                                                        {6, 2, 4},  //
                                                        {5, 5, 5}}));
  EXPECT_EQ(builder.next(), 7) << "generation goes on after the largest position, here the last frame's";
}

TEST(PositionCursorTest, TokensOfSomeCellsStandWhereTheyStandAmongAll) {
  base::GridMask some = base::GridMask::none(2, 3);
  some.add(0, 2);
  some.add(1, 1);
  const base::GridMask all = base::GridMask::all(2, 3);
  const base::GridMask none = base::GridMask::none(2, 3);
  const std::vector<PositionCursor::Patch> patches{{&all, 0}, {&some, 5}, {&none, 10}};
  const Position origin{50, 7, 9};
  std::vector<Position> whole, kept;
  PositionCursor of_all(origin), of_kept(origin);
  of_all.text(4, whole);
  of_all.grid(3, 2, 3, 5, whole);
  of_all.text(1, whole);
  of_kept.text(4, kept);
  of_kept.grid(patches, kept);
  of_kept.text(1, kept);
  std::vector<Position> expected(whole.begin(), whole.begin() + 10);
  expected.push_back(whole[4 + 6 + 2]);
  expected.push_back(whole[4 + 6 + 4]);
  expected.push_back(whole.back());
  EXPECT_EQ(kept, expected);
  EXPECT_EQ(of_kept.next(), of_all.next()) << "also if the last patch has no token";
  const std::vector<PositionCursor::Patch> far{{&all, 0}, {&some, std::int64_t{1} << 31}};
  EXPECT_THROW(of_kept.grid(far, kept), std::invalid_argument);
  EXPECT_EQ(kept, expected);
}

// As Qwen3-VL has them, but for the texts between its frames: each frame begins where the one before it
// ended.
TEST(PositionCursorTest, TimeMovesTheAxesThatItIsToldAndTextFollowsTheLastGrid) {
  const base::GridMask all = base::GridMask::all(1, 2);
  const std::vector<PositionCursor::Patch> patches{{&all, 0}, {&all, 3}};
  std::vector<Position> positions;
  PositionCursor cursor({10, 20, 30});
  cursor.text(1, positions);
  cursor.grid(patches, positions, {true, true, true});
  cursor.text(1, positions);
  EXPECT_EQ(positions,
            (std::vector<Position>{
                {10, 20, 30}, {11, 21, 31}, {11, 21, 32}, {14, 24, 34}, {14, 24, 35}, {16, 26, 36}}));
  EXPECT_EQ(cursor.next(), 7);
  const std::vector<PositionCursor::Patch> far{{&all, 0}, {&all, (std::int64_t{1} << 31) - 20}};
  EXPECT_THROW(cursor.grid(far, positions, {false, false, true}), std::invalid_argument);
  EXPECT_EQ(positions.size(), 6U);
}

TEST(PositionBuilderTest, NothingStartsAtZero) {
  EXPECT_EQ(PositionBuilder().next(), 0);
}

TEST(PositionBuilderTest, RefusesWhatReachesTooFar) {
  PositionBuilder builder;
  builder.text(2);
  EXPECT_THROW(builder.grid(3, 1, 1, 1 << 30), std::invalid_argument);
  builder.grid(2, 1, 1, 1 << 30);
  EXPECT_EQ(builder.positions().back(), (Position{2 + (1 << 30), 2, 2}));
}

TEST(TimeIntervalTest, RefusesWhatIsNoPosition) {
  VisionConfig vision;
  vision.tokens_per_second = 2;
  EXPECT_EQ(time_interval(vision, 1e9), 2'000'000'000);
  for (const double seconds : {2e9, 1e300, std::numeric_limits<double>::quiet_NaN()})
    EXPECT_THROW(time_interval(vision, seconds), std::invalid_argument) << seconds;
}

TEST(TimeIntervalTest, CountsWholeSecondsOnly) {
  VisionConfig vision;
  vision.tokens_per_second = 2;
  EXPECT_EQ(time_interval(vision, 1.0), 2);
  EXPECT_EQ(time_interval(vision, 2.0), 4);
  EXPECT_EQ(time_interval(vision, 2.9), 4);
  EXPECT_EQ(time_interval(vision, 0.5), 0) << "as transformers 5 has it";
}

TEST(MultimodalRopeTest, AxesTakeThePairsInRuns) {
  TextConfig config;
  config.head_dim = 8;
  config.rope_theta = 16;
  config.mrope_section = {1, 2, 1};
  const std::vector<kernels::RopeFrequency> pairs = multimodal_rope(config);
  const std::vector<kernels::RopeFrequency> expected{{1.0F, 0}, {0.5F, 1}, {0.25F, 1}, {0.125F, 2}};
  ASSERT_EQ(pairs.size(), expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_NEAR(pairs[j].inverse, expected[j].inverse, 1e-7) << j;
    EXPECT_EQ(pairs[j].axis, expected[j].axis) << j;
  }
}

}  // namespace
}  // namespace vigil::model
