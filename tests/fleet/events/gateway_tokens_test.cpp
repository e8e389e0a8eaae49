// What tells a gateway's times of serving apart, and their order.
#include "fleet/events/gateway_tokens.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/duration.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;

class WallClock final : public base::Clock {
 public:
  TimePoint now() const override { return {}; }
  WallTime wall() const override { return time; }
  WallTime time{1785578400s};
};

class GatewayTokensTest : public ::testing::Test {
 protected:
  static std::string name(int number) {
    const std::string digits = std::to_string(number);
    return std::string(16 - digits.size(), 'a') + digits;
  }
  GatewayTokens make() {
    return {clock_, [this] { return name(++names_); }};
  }

  WallClock clock_;
  int names_ = 0;
};

TEST_F(GatewayTokensTest, HaveTheTimeOfDayAndAName) {
  EXPECT_EQ(make().next(""), "00000001785578400000" + name(1));
}

TEST_F(GatewayTokensTest, ComeBehindEachOtherWhateverTheClockSays) {
  GatewayTokens tokens = make();
  std::string before = tokens.next("");
  for (const base::Duration step : {0ms, 0ms, 1ms, 5000ms, -3'600'000ms, 0ms}) {
    clock_.time += step;
    const std::string next = tokens.next("");
    EXPECT_GT(next, before);
    EXPECT_EQ(next.size(), before.size());
    before = next;
  }
  clock_.time = base::Clock::WallTime(-1s);
  EXPECT_GT(tokens.next(""), before);
  const std::string first = make().next("");
  EXPECT_EQ(first, "00000000000000000001" + name(names_)) << "of a clock from before 1970";
}

TEST_F(GatewayTokensTest, ComeBehindThatOfAnotherGatewayWhoseClockIsAhead) {
  clock_.time += 24h;
  const std::string other = make().next("");
  clock_.time -= 24h;
  GatewayTokens tokens = make();
  const std::string next = tokens.next(other);
  EXPECT_EQ(next, "00000001785664800001" + name(2));
  EXPECT_GT(tokens.next(""), next) << "and so do those that follow";
}

// As from a damaged disk, or a program of another version.
TEST_F(GatewayTokensTest, ComeBehindWhatNobodyHereHasMade) {
  const std::string own = make().next("");
  const std::vector<std::string> ugly = {"x",
                                         "g20000",
                                         "1",
                                         "9",
                                         own.substr(0, 12),
                                         own.substr(0, 20),
                                         own.substr(0, 35),
                                         own.substr(1),
                                         own + own,
                                         own + "a",
                                         "0000000178557840000Z" + name(1),
                                         "00000001785578400000" + std::string(16, 'z'),
                                         "00000001785578400000" + std::string(16, '\xff'),
                                         "99999999999999999999" + name(1),
                                         "18446744073709551615" + name(1),
                                         "18446744073709551614" + name(1),
                                         "+0000001785578400000" + name(1),
                                         "-0000001785578400000" + name(1),
                                         std::string("\0\0", 2),
                                         std::string(36, '0'),
                                         std::string(36, 'f'),
                                         std::string(1000, '9'),
                                         "\xff\xff"};
  for (const std::string& after : ugly) {
    GatewayTokens tokens = make();
    std::string before = after;
    std::set<std::string> all;
    for (int i = 0; i < 5; ++i) {
      const std::string next = tokens.next(i % 2 == 0 ? before : "");
      EXPECT_GT(next, before) << after;
      EXPECT_GE(next.size(), own.size());
      EXPECT_LE(next.size(), after.size() + 2 * own.size()) << after << ": no longer each time";
      EXPECT_EQ(next.find(' '), std::string::npos);
      EXPECT_TRUE(all.insert(next).second);
      before = next;
    }
    EXPECT_GT(make().next(before), before) << "by the next one that serves";
  }
}

}  // namespace
}  // namespace vigil::fleet
