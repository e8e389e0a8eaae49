#include "bench/figures.h"

#include <sstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace vigil::bench {
namespace {

using nlohmann::json;

TEST(Figure, HasTheStatisticsOfASample) {
  const Figure figure{"prefill", "s", {4, 1, 1, 2}};
  EXPECT_EQ(figure.mean(), 2);
  EXPECT_NEAR(figure.deviation(), 1.4142135623730951, 1e-12) << "of a sample: one less than there are";
  EXPECT_EQ(figure.median(), 1.5);
  EXPECT_EQ((Figure{"prefill", "s", {3, 1, 2}}).median(), 2);
  EXPECT_EQ((Figure{"load", "s", {7}}).deviation(), 0) << "of a single run";
}

TEST(Figures, AreALineEachInTheOrderInWhichTheyCame) {
  Figures figures;
  figures.add("vision", "s", 1);
  figures.add("decode", "1/s", 10);
  figures.add("vision", "s", 3);
  std::ostringstream out;
  figures.print({{"bench", "ask"}, {"commit", "abc"}}, out);
  std::istringstream lines(out.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(json::parse(line), json({{"bench", "ask"},
                                     {"commit", "abc"},
                                     {"figure", "vision"},
                                     {"unit", "s"},
                                     {"mean", 2.0},
                                     {"deviation", figures.all()[0].deviation()},
                                     {"median", 2.0},
                                     {"runs", 2}}));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(json::parse(line).at("figure"), "decode");
  EXPECT_EQ(json::parse(line).at("runs"), 1);
  EXPECT_FALSE(std::getline(lines, line));
}

}  // namespace
}  // namespace vigil::bench
