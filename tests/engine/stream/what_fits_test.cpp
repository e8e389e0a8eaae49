#include "engine/stream/what_fits.h"

#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>

namespace vigil::stream {
namespace {

TEST(WhatFits, NamesARateAndAnEnd) {
  EXPECT_EQ(what_fits({.from = 0, .seconds = 3480, .fps = 2, .frames = 512}), "--fps 0.14 or --to 255");
  EXPECT_EQ(what_fits({.from = 60, .seconds = 600, .fps = 2, .frames = 102}), "--fps 0.16 or --to 110");
}

TEST(WhatFits, WhatItNamesFits) {
  for (const double seconds : {41.0, 60.0, 599.5, 3480.0, 86400.0}) {
    for (const double fps : {0.5, 2.0, 25.0}) {
      for (const double frames : {4.0, 81.0, 512.0, 16000.0}) {
        const std::string text =
            what_fits({.from = 10, .seconds = seconds, .fps = fps, .frames = frames}).value();
        const std::size_t rate = text.find("--fps ");
        const std::size_t end = text.find("--to ");
        ASSERT_NE(end, std::string::npos) << text;
        if (rate != std::string::npos) {
          EXPECT_LE(std::ceil(std::atof(text.c_str() + rate + 6) * seconds), frames) << text;
        }
        EXPECT_LE(std::ceil((std::atof(text.c_str() + end + 5) - 10) * fps), frames) << text;
      }
    }
  }
}

TEST(WhatFits, SaysSoWhereNothingDoes) {
  EXPECT_EQ(what_fits({.from = 0, .seconds = 30, .fps = 2, .frames = 0}), std::nullopt);
  EXPECT_EQ(what_fits({.from = 0, .seconds = 30, .fps = 2, .frames = 1.9}), std::nullopt);
  EXPECT_EQ(what_fits({.from = 0, .seconds = 30, .fps = 2, .frames = -14}), std::nullopt);
  EXPECT_EQ(what_fits({.from = 0, .seconds = 30, .fps = 2, .frames = 2}), "--fps 0.033 or --to 0.5");
}

TEST(WhatFits, LeavesOutARateThatMakesNoSense) {
  EXPECT_EQ(what_fits({.from = 0, .seconds = 1e9, .fps = 2, .frames = 12}), "--to 5");
  EXPECT_EQ(what_fits({.from = 0, .seconds = 0, .fps = 2, .frames = 12}), "--to 5");
}

}  // namespace
}  // namespace vigil::stream
