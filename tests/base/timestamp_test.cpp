#include "base/timestamp.h"

#include <ctime>

#include <gtest/gtest.h>

namespace vigil::base {
namespace {

using namespace std::chrono_literals;

base::Clock::WallTime at(std::chrono::seconds seconds) {
  return base::Clock::WallTime(seconds);
}

TEST(Timestamp, ReadsWhatRfc3339Allows) {
  EXPECT_EQ(base::parse_rfc3339("2026-08-01T10:00:00Z"), at(1785578400s));
  EXPECT_EQ(base::parse_rfc3339("2026-08-01t10:00:00z"), at(1785578400s));
  EXPECT_EQ(base::parse_rfc3339("2026-08-01T12:00:00+02:00"), at(1785578400s));
  EXPECT_EQ(base::parse_rfc3339("2026-08-01T04:30:00-05:30"), at(1785578400s));
  EXPECT_EQ(base::parse_rfc3339("2026-08-01T10:00:00.25Z"), at(1785578400s) + 250ms);
  EXPECT_EQ(base::parse_rfc3339("2026-08-01T10:00:00.4809999Z"), at(1785578400s) + 480ms);
  EXPECT_EQ(base::parse_rfc3339("2016-12-31T23:59:60Z"), base::parse_rfc3339("2017-01-01T00:00:00Z"))
      << "a leap second";
  EXPECT_EQ(base::parse_rfc3339("2000-02-29T00:00:00Z"), at(951782400s));
  EXPECT_EQ(base::parse_rfc3339("1970-01-01T00:00:00Z"), at(0s));
}

TEST(Timestamp, RefusesEverythingElse) {
  for (const char* text : {"",
                           "tomorrow",
                           "2026-08-01",
                           "2026-08-01T10:00:00",
                           "2026-08-01T10:00Z",
                           "2026-08-01 10:00:00Z",
                           "2026-8-1T10:00:00Z",
                           "2026-02-30T10:00:00Z",
                           "2026-13-01T10:00:00Z",
                           "2026-08-01T24:00:00Z",
                           "2026-08-01T10:60:00Z",
                           "2026-08-01T10:00:61Z",
                           "2026-08-01T10:00:00.Z",
                           "2026-08-01T10:00:00+2:00",
                           "2026-08-01T10:00:00+24:00",
                           "2026-08-01T10:00:00+01:60",
                           "2026-08-01T10:00:00Zz",
                           "2026-08-01T10:00:00Z ",
                           " 2026-08-01T10:00:00Z",
                           "1969-12-31T23:59:59Z",
                           "2262-01-01T00:00:00Z",
                           "-026-08-01T10:00:00Z",
                           "2026-08-01T10:00:00+02:00Z"}) {
    EXPECT_EQ(base::parse_rfc3339(text), std::nullopt) << text;
  }
}

TEST(Timestamp, ReadsBackWhatItWritesAsTheSystemCounts) {
  for (std::int64_t second = 0; second < 9'200'000'000; second += 98'765'432) {
    const base::Clock::WallTime time = at(std::chrono::seconds(second)) + 7ms;
    const std::string text = base::format_rfc3339(time);
    EXPECT_EQ(base::parse_rfc3339(text), time) << text;
    const std::time_t counted = second;
    std::tm parts{};
    ASSERT_NE(gmtime_r(&counted, &parts), nullptr);
    char expected[40];
    ASSERT_GT(std::strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.007Z", &parts), 0U);
    EXPECT_EQ(text, expected);
  }
}

}  // namespace
}  // namespace vigil::base
