#include "config/duration.h"

#include <gtest/gtest.h>

namespace vigil::config {
namespace {

using namespace std::chrono_literals;

TEST(Duration, ReadsNumbersWithUnits) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("40s"), 40s);
  EXPECT_EQ(parse_duration("2m"), 2min);
  EXPECT_EQ(parse_duration("1.5h"), 90min);
  EXPECT_EQ(parse_duration("7d"), 168h);
  EXPECT_EQ(parse_duration("0s"), 0s);
  EXPECT_EQ(parse_duration("0.25s"), 250ms);
}

TEST(Duration, RefusesEverythingElse) {
  for (const char* text : {"", "s", "5", "5 s", "-5s", "-0s", "5S", "5sec", "1e3s", "infs", "nans", "5s ",
                           " 5s", "1m30s", "1000000000000000000000d", "0x10s", "1,5s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << '"' << text << '"';
  }
}

TEST(Duration, PrintsWhatItReadsBack) {
  for (const Duration value :
       {Duration(0), Duration(1), Duration(1500), Duration(40s), Duration(90min), Duration(48h)}) {
    EXPECT_EQ(parse_duration(format_duration(value)), value);
  }
  EXPECT_EQ(format_duration(1500ms), "1500ms");
  EXPECT_EQ(format_duration(120s), "2m");
  EXPECT_EQ(format_duration(168h), "7d");
}

}  // namespace
}  // namespace vigil::config
