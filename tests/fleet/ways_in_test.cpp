// Whom a node asks whether they reach it, and when it is better given nothing.
#include "fleet/node/ways_in.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::ManualClock;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class WaysInTest : public ::testing::Test {
 protected:
  ManualClock clock_;
  WaysIn book_{clock_, "me:7400"};
};

TEST_F(WaysInTest, OneThatReachesItIsEnough) {
  EXPECT_THAT(book_.take_asks({}), IsEmpty());
  EXPECT_FALSE(book_.holds_back()) << "nobody is there";
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), ElementsAre("a", "b", "c"));
  EXPECT_FALSE(book_.holds_back()) << "nobody has said anything";
  book_.heard("b", "");
  EXPECT_TRUE(book_.is_reached());
  EXPECT_FALSE(book_.holds_back());
  book_.heard("a", "nobody listens there");
  clock_.advance(60s);
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), IsEmpty());
  EXPECT_FALSE(book_.holds_back());
}

TEST_F(WaysInTest, ThreeThatDoNotAreBelievedOrAllThatThereAre) {
  book_.take_asks({"a", "b", "c", "d"});
  book_.heard("a", "no way");
  book_.heard("b", "no way");
  EXPECT_FALSE(book_.holds_back());
  book_.heard("c", "no way");
  EXPECT_TRUE(book_.holds_back());

  WaysIn of_two(clock_, "me:7400");
  EXPECT_THAT(of_two.take_asks({"a"}), ElementsAre("a"));
  of_two.heard("a", "no way");
  EXPECT_TRUE(of_two.holds_back()) << "there is no other one";
  clock_.advance(1s);
  EXPECT_THAT(of_two.take_asks({"a", "b"}), SizeIs(2));
  EXPECT_FALSE(of_two.holds_back()) << "the other one may";
  of_two.heard("b", "no way");
  EXPECT_TRUE(of_two.holds_back());
  // They are gone.
  of_two.unheard("a");
  of_two.take_asks({});
  EXPECT_FALSE(of_two.holds_back());
}

TEST_F(WaysInTest, WhoCameInVainIsHeldBackUntilOneReachesIt) {
  book_.ask("a");
  book_.came_in_vain(/*is_told=*/false);
  EXPECT_TRUE(book_.holds_back());
  book_.unheard("a");
  EXPECT_TRUE(book_.holds_back());
  book_.heard("a", "");
  EXPECT_FALSE(book_.holds_back());
  book_.came_in_vain(/*is_told=*/false);
  EXPECT_FALSE(book_.holds_back());
}

TEST_F(WaysInTest, AsksAgainLessAndLessOftenWhoeverWasNotAskedForTheLongest) {
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), ElementsAre("a", "b", "c"));
  clock_.advance(10ms);
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), IsEmpty()) << "three are asked already";
  for (const char* node : {"a", "b", "c"}) book_.heard(node, "no way");
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), ElementsAre("d", "a", "b"));
  for (const char* node : {"d", "a", "b"}) book_.heard(node, "no way");
  EXPECT_THAT(book_.take_asks({"a", "b", "c", "d"}), IsEmpty());
  for (const auto& [pause, expected] : {std::pair(1s, 1U),
                                        {1s, 0U},
                                        {1s, 1U},
                                        {3s, 0U},
                                        {1s, 1U},
                                        {7s, 0U},
                                        {1s, 1U},
                                        {9s, 0U},
                                        {1s, 1U},
                                        {9s, 0U},
                                        {1s, 1U}}) {
    clock_.advance(pause);
    const auto asks = book_.take_asks({"a"});
    EXPECT_THAT(asks, SizeIs(expected));
    for (const std::string& node : asks) book_.unheard(node);
  }
}

TEST_F(WaysInTest, ABuildThatDoesNotTellIsBelieved) {
  book_.take_asks({"a", "b"});
  book_.heard("a", "no way");
  book_.heard_nothing_of_it();
  EXPECT_TRUE(book_.is_reached());
  EXPECT_FALSE(book_.holds_back());
}

TEST_F(WaysInTest, SaysWhatIsNewsOnce) {
  book_.take_asks({"a", "b"});
  EXPECT_THAT(book_.take_lines(), IsEmpty());
  book_.heard("a", "no way");
  EXPECT_THAT(book_.take_lines(), ElementsAre("node a does not reach this one at me:7400: no way"));
  book_.heard("a", "no way");
  EXPECT_THAT(book_.take_lines(), IsEmpty());
  book_.heard("b", "refused");
  EXPECT_THAT(book_.take_lines(),
              ElementsAre("node b does not reach this one at me:7400: refused",
                          "no node with which it deals has come to it at me:7400 (cluster.advertise): it is "
                          "given nothing until one has, as long as others can have it"));
  EXPECT_THAT(book_.take_lines(), IsEmpty());
  book_.heard("a", "");
  EXPECT_THAT(book_.take_lines(), ElementsAre("node a reaches this one"));

  WaysIn told(clock_, "me:7400");
  told.came_in_vain(/*is_told=*/true);
  EXPECT_THAT(told.take_lines(), IsEmpty());
}

}  // namespace
}  // namespace vigil::fleet
