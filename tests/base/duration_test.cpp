#include "base/duration.h"

#include <gtest/gtest.h>

namespace vigil::base {
namespace {

using namespace std::chrono_literals;

TEST(DurationText, ReadsNumbersWithUnits) {
  EXPECT_EQ(base::parse_duration("500ms"), 500ms);
  EXPECT_EQ(base::parse_duration("40s"), 40s);
  EXPECT_EQ(base::parse_duration("2m"), 2min);
  EXPECT_EQ(base::parse_duration("1.5h"), 90min);
  EXPECT_EQ(base::parse_duration("7d"), 168h);
  EXPECT_EQ(base::parse_duration("0s"), 0s);
  EXPECT_EQ(base::parse_duration("0.25s"), 250ms);
}

TEST(DurationText, RefusesEverythingElse) {
  for (const char* text : {"", "s", "5", "5 s", "-5s", "-0s", "5S", "5sec", "1e3s", "infs", "nans", "5s ",
                           " 5s", "1m30s", "1000000000000000000000d", "0x10s", "1,5s"}) {
    EXPECT_EQ(base::parse_duration(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(DurationText, PrintsWhatItReadsBack) {
  for (const base::Duration value : {base::Duration(0), base::Duration(1), base::Duration(1500),
                                     base::Duration(40s), base::Duration(90min), base::Duration(48h)}) {
    EXPECT_EQ(base::parse_duration(base::format_duration(value)), value);
  }
  EXPECT_EQ(base::format_duration(1500ms), "1500ms");
  EXPECT_EQ(base::format_duration(120s), "2m");
  EXPECT_EQ(base::format_duration(168h), "7d");
}

TEST(Moment, IsReadAsPeopleAndPlayersWriteIt) {
  const std::pair<const char*, double> cases[] = {
      {"15", 15},           {"7.5", 7.5},    {"0", 0},      {"0:15", 15},  {"1:02:03.5", 3723.5},
      {"90:00", 5400},      {"00:00:07", 7}, {"90s", 90},   {"1m30s", 90}, {"500ms", 0.5},
      {"1h2m3.5s", 3723.5}, {"2h30s", 7230}, {"1d", 86400}, {".5", 0.5},   {"1:00:00", 3600},
  };
  for (const auto& [text, seconds] : cases) {
    ASSERT_TRUE(base::parse_moment(text)) << text;
    EXPECT_DOUBLE_EQ(*base::parse_moment(text), seconds) << text;
  }
}

TEST(Moment, IsNothingElse) {
  for (const char* text : {"",
                           " ",
                           "-1",
                           "+1",
                           "0:60",
                           "0:-1",
                           "1:2:3:4",
                           ":15",
                           "15:",
                           "1.5:00",
                           "1:99:00",
                           "1e3",
                           "30s1m",
                           "1m1m",
                           "1m30",
                           "m",
                           "nan",
                           "inf",
                           "0x10",
                           "15 s",
                           "1:1:",
                           "::",
                           "1..5",
                           ".",
                           "99999999999999999999",
                           "99999999999d",
                           "1h-2m",
                           "0:15s"}) {
    EXPECT_EQ(base::parse_moment(text), std::nullopt) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace vigil::base
