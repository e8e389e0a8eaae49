#include "cluster/membership/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr base::Clock::WallTime kNow{std::chrono::seconds(1'790'000'000)};

Greeting greeting(const std::string& name) {
  Greeting made;
  made.fleet = "city";
  made.node.name = name;
  made.node.incarnation = name + "-1";
  made.node.roles = {NodeRole::camera, NodeRole::gateway};
  made.node.state = NodeState::ready;
  made.node.control = {name + ".vigil", 7400};
  made.node.bulk = {"10.0.0.1", 7401};
  made.node.bulk_key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
  made.node.version = "0.9";
  made.node.commit = "abc";
  made.node.protocol = {1, 2};
  made.node.model = "6fc2";
  made.node.weight = 1.5;
  made.node.cameras = 100;
  made.node.streams = 80.5;
  made.node.config = "c1";
  made.node.config_seen = "c2";
  made.node.config_fault = "line 3: unknown key";
  made.node.highest_fence = 1'000'000'000'000'000'000;
  made.node.serves = true;
  made.node.keeps_events = true;
  made.wall = kNow;
  return made;
}

std::string why(const Greeting& mine, const Greeting& theirs, std::optional<base::Duration> way = 0ms) {
  return misfit(mine, theirs, kNow, way).value_or("they fit");
}

TEST(Greeting, IsReadBackAsItWas) {
  const Greeting sent = greeting("a");
  const Greeting read = parse_greeting(print(sent));
  EXPECT_EQ(read.fleet, sent.fleet);
  EXPECT_EQ(read.node, sent.node);
  EXPECT_EQ(read.wall, sent.wall);
}

TEST(Greeting, AsksAndIsToldWhetherItIsReached) {
  Greeting asking = greeting("a");
  EXPECT_FALSE(parse_greeting(print(asking)).asks_whether_reached);
  asking.asks_whether_reached = true;
  EXPECT_TRUE(parse_greeting(print(asking)).asks_whether_reached);
  GreetingAnswer answer{greeting("b"), {}};
  EXPECT_EQ(parse_answer(print(answer)).not_reached, std::nullopt);
  for (const char* why : {"", "nobody listens there"}) {
    answer.not_reached = why;
    EXPECT_EQ(parse_answer(print(answer)).not_reached, why);
    EXPECT_EQ(parse_answer(print(answer)).greeting->node, answer.greeting->node);
  }
}

TEST(Greeting, OfANewerBuildIsUnderstood) {
  std::string text = print(greeting("a"));
  text.insert(text.find("\"bulk\""), "\"moods\":[\"calm\"],");
  text.replace(text.find("\"camera\""), 8, "\"dream\",\"camera\"");
  EXPECT_EQ(parse_greeting(text).node, greeting("a").node);
}

TEST(Greeting, ThatIsNoneIsRefusedInOneLine) {
  const auto refusal = [](const std::string& text) {
    try {
      parse_greeting(text);
      return std::string("taken");
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
  };
  for (const char* wrong :
       {"", "{", "[]", "null", "{\"fleet\":1}", "{\"fleet\":\"x\",\"node\":{},\"wall_ms\":1}"}) {
    const std::string said = refusal(wrong);
    EXPECT_THAT(said, HasSubstr("no greeting of a node: ")) << wrong;
    EXPECT_EQ(said.find('\n'), std::string::npos) << wrong;
  }
  std::string text = print(greeting("a"));
  text.replace(text.find("a.vigil:7400"), 12, "a.vigil:x400");
  EXPECT_THAT(refusal(text), HasSubstr("'a.vigil:x400' is no HOST:PORT"));
}

TEST(Misfit, IsNoneBetweenNodesOfOneFleet) {
  EXPECT_EQ(why(greeting("a"), greeting("b")), "they fit");
  // A gateway needs no model.
  Greeting gateway = greeting("b");
  gateway.node.model.clear();
  EXPECT_EQ(why(greeting("a"), gateway), "they fit");
  // One may greet itself, by whichever of its addresses.
  EXPECT_EQ(why(greeting("a"), greeting("a")), "they fit");
}

TEST(Misfit, NamesWhatDiffersAndWhoHasWhat) {
  Greeting other = greeting("b");
  other.fleet = "harbour";
  EXPECT_EQ(why(greeting("a"), other), "another fleet: a has city, b has harbour");
  other = greeting("b");
  other.node.protocol = {3, 3};
  other.node.version = "1.0";
  EXPECT_EQ(why(greeting("a"), other),
            "no protocol in common: a has 1 to 2 (version 0.9), b has 3 (version 1.0)");
  other = greeting("b");
  other.node.model = "1234";
  EXPECT_EQ(why(greeting("a"), other), "another model: a has 6fc2, b has 1234");
  other = greeting("a");
  other.node.incarnation = "another";
  other.node.control = {"elsewhere", 7400};
  EXPECT_EQ(why(greeting("a"), other), "two nodes are called a: at a.vigil:7400 and at elsewhere:7400");
}

TEST(Misfit, SpeaksTheNewestProtocolThatBothKnow) {
  Greeting next = greeting("b");
  next.node.protocol = {2, 3};
  EXPECT_EQ(why(greeting("a"), next), "they fit");
  EXPECT_EQ(agreed_protocol({1, 2}, {2, 3}), 2U);
  EXPECT_EQ(agreed_protocol({2, 3}, {1, 2}), 2U);
  EXPECT_EQ(agreed_protocol({1, 1}, {1, 5}), 1U);
}

TEST(Misfit, AllowsForTheWayWhenItComparesClocks) {
  Greeting other = greeting("b");
  other.wall = kNow + 5s;
  EXPECT_EQ(why(greeting("a"), other), "clocks are apart: that of b is at least 5s ahead of that of a");
  other.wall = kNow - 5s;
  EXPECT_EQ(why(greeting("a"), other), "clocks are apart: that of b is at least 5s behind that of a");
  // It may have been written at the beginning of a way that took long.
  EXPECT_EQ(why(greeting("a"), other, 4s), "they fit");
  EXPECT_EQ(why(greeting("a"), other, std::nullopt), "they fit") << "nobody knows how long it was under way";
  other.wall = kNow + 5s;
  EXPECT_EQ(why(greeting("a"), other, std::nullopt),
            "clocks are apart: that of b is at least 5s ahead of that of a")
      << "whatever it took";
  other.wall = kNow + 1999ms;
  EXPECT_EQ(why(greeting("a"), other), "they fit");
}

}  // namespace
}  // namespace vigil::cluster
