#include "bench/capacity.h"

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kStride = 8;

/// A machine that holds so many cameras: windows of more take longer than their stride.
class CapacityTest : public ::testing::Test {
 protected:
  Capacity measure(const CapacityPlan& plan) {
    return measure_capacity(
        plan, kStride,
        [this](int cameras, double seconds, bool may_stop) {
          measured_.push_back(std::to_string(cameras) + " for " + std::to_string(static_cast<int>(seconds)) +
                              " s" + (may_stop ? " at most" : ""));
          PipelineFigures figures;
          figures.cameras = cameras;
          figures.due = 1;
          figures.windows.resize(1);
          figures.windows[0].latency = cameras <= held_ ? kStride : 1.01 * kStride;
          return figures;
        },
        [this](const char* figure, const PipelineFigures& figures, std::optional<int> held) {
          told_.push_back(figure + (" " + std::to_string(figures.cameras)) +
                          (held ? " held " + std::to_string(*held) : ""));
        });
  }

  int held_ = 5;
  std::vector<std::string> measured_;
  std::vector<std::string> told_;
};

TEST_F(CapacityTest, ASearchTellsItsStepsAndThenTheBestOnceMore) {
  const Capacity capacity = measure({.start = 4, .most = 100, .seconds = 32});
  EXPECT_EQ(capacity.held, 5);
  EXPECT_TRUE(capacity.measured);
  EXPECT_THAT(measured_, ElementsAre("4 for 32 s at most", "8 for 32 s at most", "6 for 32 s at most",
                                     "5 for 32 s at most"));
  EXPECT_THAT(told_, ElementsAre("step 4", "step 8", "step 6", "step 5", "cameras_held 5 held 5"));
}

TEST_F(CapacityTest, TheBestIsTheMostThatWereHeldAndNotTheLastThatWereTried) {
  held_ = 4;
  EXPECT_EQ(measure({.start = 4, .most = 100, .seconds = 32}).held, 4);
  EXPECT_EQ(told_.back(), "cameras_held 4 held 4");
}

TEST_F(CapacityTest, ASearchBeginsWithNoMoreThanItMayTry) {
  held_ = 1000;
  EXPECT_EQ(measure({.start = 16, .most = 3, .seconds = 32}).held, 3);
  EXPECT_THAT(told_, ElementsAre("step 3", "cameras_held 3 held 3"));
}

TEST_F(CapacityTest, WhereNoneIsHeldThereIsNothingToGoBy) {
  held_ = 0;
  const Capacity capacity = measure({.start = 2, .most = 100, .overload = 2, .seconds = 32});
  EXPECT_EQ(capacity.held, 0);
  EXPECT_FALSE(capacity.measured);
  EXPECT_THAT(told_, ElementsAre("step 2", "step 1")) << "no overload of nothing";
}

TEST_F(CapacityTest, NumbersThatAreNamedAreMeasuredToTheirEndWhateverComesOfThem) {
  const Capacity capacity = measure({.exactly = {3, 9, 5, 4}, .seconds = 32});
  EXPECT_EQ(capacity.held, 5);
  EXPECT_TRUE(capacity.measured);
  EXPECT_THAT(measured_, ElementsAre("3 for 32 s", "9 for 32 s", "5 for 32 s", "4 for 32 s"));
  EXPECT_THAT(told_, ElementsAre("step 3 held 3", "step 9 held 3", "step 5 held 5", "step 4 held 5"));

  told_.clear();
  held_ = 0;
  EXPECT_TRUE(measure({.exactly = {3}, .overload = 2, .seconds = 32}).measured);
  EXPECT_THAT(told_, ElementsAre("step 3 held 0"));
}

TEST_F(CapacityTest, AnOverloadIsMoreThanWasHeldAndLongEnoughToSeeWhoIsServed) {
  measure({.exactly = {5}, .overload = 2, .seconds = 32});
  EXPECT_EQ(measured_.back(), "10 for 75 s");
  EXPECT_EQ(told_.back(), "overload 10 held 5");
  measure({.exactly = {5}, .overload = 0.5, .seconds = 100});
  EXPECT_EQ(measured_.back(), "6 for 100 s");
}

TEST_F(CapacityTest, WhatEndsAMeasurementEndsAll) {
  std::vector<std::string> told;
  EXPECT_THROW(
      measure_capacity(
          {.start = 4, .most = 8}, kStride,
          [](int, double, bool) -> PipelineFigures { throw std::runtime_error("the pipeline ended"); },
          [&](const char* figure, const PipelineFigures&, std::optional<int>) { told.emplace_back(figure); }),
      std::runtime_error);
  EXPECT_THAT(told, IsEmpty());
}

}  // namespace
}  // namespace vigil::bench
