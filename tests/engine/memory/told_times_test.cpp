#include "engine/memory/told_times.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/engine/memory/made_pages.h"

namespace vigil::memory {
namespace {

using testing::kNoon;
using testing::kSecond;

/// Three patches of a second, 40 seconds of which nothing is shown, and two of another run, which is shown
/// to be a second after the first.
const std::vector<ShownPatch> kShown{{0, {kNoon, kNoon + kSecond}},
                                     {1, {kNoon + kSecond, kNoon + 2 * kSecond}},
                                     {2.5, {kNoon + 5 * kSecond / 2, kNoon + 7 * kSecond / 2}},
                                     {10, {kNoon + 40 * kSecond, kNoon + 41 * kSecond}},
                                     {11, {kNoon + 41 * kSecond, kNoon + 42 * kSecond}}};

double after_noon(double second) {
  return static_cast<double>(wall_of_second(second, kShown) - kNoon) * 1e-9;
}

TEST(ToldTimesTest, ASecondIsWhenItsPatchWas) {
  EXPECT_EQ(after_noon(0), 0);
  EXPECT_EQ(after_noon(1.5), 1.5);
  EXPECT_EQ(after_noon(10), 40);
  EXPECT_EQ(after_noon(11.25), 41.25);
}

TEST(ToldTimesTest, WhatNoPatchShowsIsTheEndOfTheOneBefore) {
  EXPECT_EQ(after_noon(2.25), 2) << "in a gap of the run";
  EXPECT_EQ(after_noon(9.99), 3.5) << "between the runs";
  EXPECT_EQ(after_noon(12.5), 42) << "after the last";
  EXPECT_EQ(after_noon(1e9), 42);
  EXPECT_EQ(after_noon(1e300), 42);
  EXPECT_EQ(after_noon(-3), 0) << "before the first";
}

std::string told(const std::string& text) {
  return in_wall_time(text, kShown);
}

TEST(ToldTimesTest, SecondsOfATextBecomeTimesOfDay) {
  EXPECT_EQ(told("A car stops at second 1.5, and leaves at Second 10"),
            "A car stops at 2024-10-04T12:00:01Z, and leaves at 2024-10-04T12:00:40Z");
  EXPECT_EQ(told("SECOND 11"), "2024-10-04T12:00:41Z");
  EXPECT_EQ(told("It stops at second 11."), "It stops at 2024-10-04T12:00:41Z.");
  EXPECT_EQ(told("second 0 second 1"), "2024-10-04T12:00:00Z 2024-10-04T12:00:01Z");
  EXPECT_EQ(told("(second 1)second 10"), "(2024-10-04T12:00:01Z)2024-10-04T12:00:40Z");
  EXPECT_EQ(told("second 99999999999"), "2024-10-04T12:00:42Z");
  EXPECT_EQ(told("second 11.9999999999999999999999"), "2024-10-04T12:00:42Z");
}

TEST(ToldTimesTest, WhatIsNoSecondOfTheWindowStays) {
  for (const std::string text : {"",
                                 "second",
                                 "second ",
                                 "Second",
                                 "seconds 11",
                                 "second  11",
                                 "second\t11",
                                 "nanosecond 11",
                                 "a2second 11",
                                 "second -11",
                                 "second .",
                                 "second +1",
                                 "the second information",
                                 "second inf",
                                 "second infinity",
                                 "second nan",
                                 "second nan(2)",
                                 "the second 2nd floor",
                                 "second 1e9",
                                 "second 0x1",
                                 "\xff second \xff",
                                 "11",
                                 "at a second of 11"})
    EXPECT_EQ(told(text), text);
  const std::string endless = "second " + std::string(400, '9');
  EXPECT_EQ(told(endless), endless);
}

// In UTC, before the epoch, too.
TEST(ToldTimesTest, TimesAreWholeSecondsThatHaveBegun) {
  EXPECT_EQ(in_wall_time("second 0", std::vector<ShownPatch>{{0, {kNoon + kSecond - 1, kNoon + kSecond}}}),
            "2024-10-04T12:00:00Z");
  EXPECT_EQ(in_wall_time("second 0", std::vector<ShownPatch>{{0, {-1, kSecond}}}), "1969-12-31T23:59:59Z");
}

}  // namespace
}  // namespace vigil::memory
