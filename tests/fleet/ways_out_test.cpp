#include "fleet/node/ways_out.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class WaysOutTest : public ::testing::Test {
 protected:
  /// As seen every half second, for so long.
  std::vector<std::string> see(const WaysOut::Seen& seen, base::Duration span) {
    std::vector<std::string> all;
    for (base::Duration done{0}; done < span; done += 500ms) {
      for (std::string& line : book_.see(seen)) all.push_back(std::move(line));
      clock_.advance(500ms);
    }
    return all;
  }
  /// Of a node that deals with these.
  static WaysOut::Seen ways(std::map<std::string, bool> ways) {
    return {.ways = std::move(ways), .has_counterparts = true, .reaches_one = true};
  }

  actors::testing::ManualClock clock_;
  WaysOut book_{clock_, 4000ms};
};

TEST_F(WaysOutTest, TellsOfAWayThatHasBeenGoneForAsLongAsThePatience) {
  EXPECT_THAT(see(ways({{"a", true}, {"b", true}}), 20s), IsEmpty());
  EXPECT_THAT(see(ways({{"a", false}, {"b", true}}), 4s), IsEmpty());
  EXPECT_THAT(book_.unreachable(), IsEmpty());
  EXPECT_THAT(see(ways({{"a", false}, {"b", true}}), 500ms), ElementsAre(HasSubstr("no way to node a for")));
  EXPECT_THAT(book_.unreachable(), ElementsAre("a"));
  EXPECT_THAT(see(ways({{"a", false}, {"b", true}}), 60s), IsEmpty()) << "once";
  EXPECT_THAT(see(ways({{"a", true}, {"b", true}}), 4s), IsEmpty()) << "nor is it taken back sooner";
  EXPECT_THAT(book_.unreachable(), ElementsAre("a"));
  EXPECT_THAT(see(ways({{"a", true}, {"b", true}}), 500ms), ElementsAre("there is a way to node a again"));
  EXPECT_THAT(book_.unreachable(), IsEmpty());
}

TEST_F(WaysOutTest, AWayThatBreaksAndStandsAgainIsNeverTold) {
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(see(ways({{"a", false}}), 3500ms), IsEmpty());
    EXPECT_THAT(see(ways({{"a", true}}), 500ms), IsEmpty());
  }
}

TEST_F(WaysOutTest, ANodeThatIsGoneOrNotDealtWithIsNotTold) {
  see(ways({{"a", false}}), 3s);
  EXPECT_THAT(see(ways({}), 500ms), IsEmpty()) << "its lease has ended";
  EXPECT_THAT(see(ways({{"a", false}}), 4s), IsEmpty()) << "it is back, and has its time";
  see(ways({{"a", false}}), 500ms);
  ASSERT_THAT(book_.all_unreachable(), ElementsAre("a"));
  see(ways({}), 500ms);
  EXPECT_THAT(book_.all_unreachable(), IsEmpty());
}

TEST_F(WaysOutTest, OfManyTheRecordHasTheFirst) {
  std::map<std::string, bool> many;
  for (int i = 0; i < 100; ++i) many["n" + std::to_string(100 + i)] = false;
  see(ways(many), 5s);
  EXPECT_EQ(book_.unreachable().size(), 32U);
  EXPECT_EQ(*book_.unreachable().begin(), "n100");
  EXPECT_EQ(book_.all_unreachable().size(), 100U) << "each is tried again";
  EXPECT_TRUE(book_.apart()) << "of the others nobody would know";
  for (int i = 32; i < 100; ++i) many["n" + std::to_string(100 + i)] = true;
  see(ways(many), 5s);
  EXPECT_EQ(book_.unreachable().size(), 32U);
  EXPECT_FALSE(book_.apart());
}

TEST_F(WaysOutTest, WhoCameInVainIsApartUntilTheFirstWayStands) {
  book_.came_in_vain();
  EXPECT_TRUE(book_.apart());
  EXPECT_THAT(see({.has_counterparts = true}, 60s), IsEmpty());
  EXPECT_TRUE(book_.apart());
  EXPECT_THAT(see({.has_counterparts = true, .reaches_one = true}, 500ms),
              ElementsAre("there is a way to nodes with which it deals"));
  EXPECT_FALSE(book_.apart()) << "at once";
  // From then on it is as of any other.
  EXPECT_THAT(see({.has_counterparts = true}, 4s), IsEmpty());
  EXPECT_FALSE(book_.apart());
  EXPECT_THAT(see({.has_counterparts = true}, 500ms), ElementsAre(HasSubstr("no way to any node")));
  EXPECT_TRUE(book_.apart());
  see({.has_counterparts = true, .reaches_one = true}, 4s);
  EXPECT_TRUE(book_.apart());
  see({.has_counterparts = true, .reaches_one = true}, 500ms);
  EXPECT_FALSE(book_.apart());
}

TEST_F(WaysOutTest, WhoIsAloneIsNotApart) {
  EXPECT_THAT(see({}, 60s), IsEmpty());
  EXPECT_FALSE(book_.apart());
  book_.came_in_vain();
  see({}, 500ms);
  EXPECT_FALSE(book_.apart()) << "those that it found there are gone";
}

TEST_F(WaysOutTest, AClockCountsOnceItHasBeenOffForAWhile) {
  WaysOut::Seen seen = ways({});
  seen.is_clock_off = true;
  EXPECT_THAT(see(seen, 4s), IsEmpty());
  EXPECT_FALSE(book_.clock_off());
  EXPECT_THAT(see(seen, 500ms), ElementsAre(HasSubstr("its clock is not that")));
  EXPECT_TRUE(book_.clock_off());
  seen.is_clock_off = false;
  see(seen, 5s);
  EXPECT_FALSE(book_.clock_off());
}

}  // namespace
}  // namespace vigil::fleet
