#include "base/repeated_lines.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

namespace vigil::base {
namespace {

using namespace std::chrono_literals;

class RepeatedLinesTest : public ::testing::Test {
 protected:
  std::string hear(int of, const std::string& line = "gone") {
    return lines_.hear(of, line, now_).value_or("");
  }

  RepeatedLines<int> lines_;
  Clock::TimePoint now_{};
};

TEST_F(RepeatedLinesTest, OneAMinuteOfEachIsSaid) {
  EXPECT_EQ(hear(1), "gone");
  EXPECT_EQ(hear(1), "");
  EXPECT_EQ(hear(2), "gone") << "that is another thing";
  now_ += 59s;
  EXPECT_EQ(hear(1, "gone again"), "");
  now_ += 1s;
  EXPECT_EQ(hear(1, "gone again"), "gone again (and 2 times since this was last said)");
  EXPECT_EQ(hear(2), "gone") << "of this one nothing was left out";
  EXPECT_EQ(hear(1), "");
  now_ += 1h;
  EXPECT_EQ(hear(1), "gone (and 1 time since this was last said)");
  now_ += 1min;
  EXPECT_EQ(hear(1), "gone");
}

TEST_F(RepeatedLinesTest, WhatWasForgottenIsSaidAsIfItWereTheFirst) {
  EXPECT_EQ(hear(1), "gone");
  EXPECT_EQ(hear(2), "gone");
  EXPECT_EQ(hear(1), "");
  lines_.forget(1);
  lines_.forget(1);
  lines_.forget(3);
  EXPECT_EQ(hear(1), "gone");
  EXPECT_EQ(hear(2), "") << "another is not forgotten with it";
  now_ += 1min;
  EXPECT_EQ(hear(1), "gone") << "nor counted on";
}

}  // namespace
}  // namespace vigil::base
