// A maker and what it tells gateways, whose answers are written by hand; and what stands before it.
#include "fleet/events/maker_desk.h"

#include <thread>

#include <gmock/gmock.h>

#include "fleet/events/shipping_publisher.h"
#include "tests/fleet/events/events_world.h"

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestClock;

constexpr const char* kTopic = "alert/t/c/r/";

actors::OutboxEvent event(std::uint64_t position, std::uint64_t sequence, const std::string& topic = kTopic,
                          const std::string& body = "") {
  return {position, topic, sequence, {}, body.empty() ? "body " + std::to_string(sequence) : body};
}

class MakerDeskTest : public ::testing::Test {
 protected:
  MakerDeskTest() { desk_.see({{"a", {"a1", 1, true}}, {"b", {"b1", 2, true}}}); }
  /// Takes what is to be asked by now, to be sent by `next`.
  void look() {
    for (MakerDesk::Ask& ask : desk_.take_asks()) asks_[ask.gateway].push_back(std::move(ask.talk));
  }
  /// The next request to a gateway; nothing if there is none.
  std::optional<MakerTalk> next(const std::string& gateway) {
    look();
    auto& waiting = asks_[gateway];
    if (waiting.empty()) return std::nullopt;
    MakerTalk talk = std::move(waiting.front());
    waiting.erase(waiting.begin());
    return talk;
  }
  GatewayTalk answer_to(const MakerTalk& talk, const std::string& token) {
    GatewayTalk answer;
    answer.number = talk.number;
    answer.token = token;
    for (const SeriesClaim& claim : talk.claims) {
      ClaimAnswer books;
      books.series = claim.series;
      books.fence = claim.fence;
      answer.claims.push_back(std::move(books));
    }
    for (const SeriesOffer& offer : talk.offers)
      answer.offers.push_back({offer.series, offer.fence, SeriesVerdict::done, offer.events.size(), 0});
    for (const SeriesCommit& commit : talk.commits)
      answer.commits.push_back({commit.series, commit.fence, SeriesVerdict::done, commit.units.size(), 0});
    return answer;
  }
  void serve(const std::string& gateway, int rounds = 1) {
    for (int i = 0; i < rounds; ++i)
      if (const auto talk = next(gateway)) desk_.heard(gateway, answer_to(*talk, gateway + "-token"));
  }
  void open(std::uint64_t fence = 1) {
    desk_.have("c");
    desk_.claim("c", fence);
    for (int i = 0; i < 3; ++i) {
      serve("a");
      serve("b");
    }
    ASSERT_THAT(desk_.take_books(), SizeIs(1));
  }

  TestClock clock_;
  MakerDesk desk_{{.node = "m", .session = "s", .own = "own", .most = 8, .pause = base::Duration(100)},
                  clock_};
  std::map<std::string, std::vector<MakerTalk>> asks_;
};

TEST_F(MakerDeskTest, ItsOwnSeriesIsClaimedAboveWhateverGatewaysKnowOfIt) {
  desk_.claim("own", 40);
  // Who they are comes first.
  serve("a");
  serve("b");
  const auto talk = next("a");
  ASSERT_TRUE(talk);
  ASSERT_THAT(talk->claims, SizeIs(1));
  GatewayTalk refusal = answer_to(*talk, "a-token");
  refusal.claims.at(0).refused = true;
  refusal.claims.at(0).higher = 90;
  desk_.heard("a", refusal);
  for (int i = 0; i < 3; ++i) {
    serve("a");
    serve("b");
  }
  EXPECT_THAT(desk_.take_lost(), IsEmpty());
  const std::vector<actors::SeriesBooks> books = desk_.take_books();
  ASSERT_THAT(books, SizeIs(1));
  EXPECT_EQ(books[0].fence, 91U);
}

TEST_F(MakerDeskTest, CommitsWhatAllHaveStagedAndIsDoneWhenAllHaveCommitted) {
  open();
  desk_.publish({event(7, 1)});
  EXPECT_EQ(desk_.published(), 6);
  const auto offer = next("a");
  ASSERT_TRUE(offer);
  EXPECT_THAT(offer->offers, SizeIs(1));
  EXPECT_THAT(offer->commits, IsEmpty());
  desk_.heard("a", answer_to(*offer, "a-token"));
  // The other one has not answered.
  EXPECT_FALSE(next("a"));
  serve("b");
  const auto commit = next("a");
  ASSERT_TRUE(commit);
  EXPECT_THAT(commit->commits, SizeIs(1));
  desk_.heard("a", answer_to(*commit, "a-token"));
  EXPECT_EQ(desk_.published(), 6);
  serve("b");
  EXPECT_EQ(desk_.published(), 7);
  EXPECT_EQ(desk_.waiting(), 0);
}

TEST_F(MakerDeskTest, AGatewayThatIsSlowHoldsNoMoreThanItsPart) {
  open();
  std::uint64_t position = 0;
  while (desk_.waiting() < 8) {
    ++position;
    desk_.publish({event(position, position)});
  }
  serve("a", 5);
  EXPECT_EQ(desk_.waiting(), 8);
  // Its lease ends: the other is all there are.
  desk_.see({{"a", {"a1", 1, true}}});
  serve("a", 5);
  EXPECT_EQ(desk_.waiting(), 0);
  EXPECT_EQ(desk_.published(), position);
}

TEST_F(MakerDeskTest, WaitsForAGatewayThatAnotherOneNamesAndTheRegistryHasNotToldOf) {
  open();
  desk_.publish({event(1, 1)});
  auto talk = next("a");
  ASSERT_TRUE(talk);
  GatewayTalk answer = answer_to(*talk, "a-token");
  answer.verdict = TalkVerdict::lacks;
  answer.offers.clear();
  answer.peers = {{"b", "b1", "b-token"}, {"new", "n1", "n-token"}};
  desk_.heard("a", answer);
  serve("b", 3);
  EXPECT_EQ(desk_.published(), 0);
  // The registry tells: the one that is named gets it, too, before it serves.
  desk_.see({{"a", {"a1", 1, true}}, {"b", {"b1", 2, true}}, {"new", {"n1", 3, false}}});
  clock_.ms += 200;
  for (int i = 0; i < 4; ++i)
    for (const char* gateway : {"a", "b"}) {
      if (const auto next_talk = next(gateway)) {
        GatewayTalk told = answer_to(*next_talk, std::string(gateway) + "-token");
        told.peers = {{"new", "n1", "n-token"}};
        desk_.heard(gateway, told);
      }
    }
  EXPECT_EQ(desk_.published(), 0);
  for (int i = 0; i < 4; ++i)
    if (const auto next_talk = next("new")) desk_.heard("new", answer_to(*next_talk, "n-token"));
  serve("a", 3);
  serve("b", 3);
  serve("new", 0);
  for (int i = 0; i < 4; ++i)
    if (const auto next_talk = next("new")) desk_.heard("new", answer_to(*next_talk, "n-token"));
  EXPECT_EQ(desk_.published(), 1);
}

TEST_F(MakerDeskTest, AHigherFenceEndsItsSeriesAndItAlone) {
  open();
  desk_.claim("other", 1);
  for (int i = 0; i < 2; ++i) {
    serve("a");
    serve("b");
  }
  ASSERT_THAT(desk_.take_books(), SizeIs(1));
  desk_.publish({event(1, 1)});
  desk_.publish({event(2, 1, "alert/t/other/r/")});
  auto talk = next("a");
  ASSERT_TRUE(talk);
  GatewayTalk answer = answer_to(*talk, "a-token");
  for (SeriesAnswer& each : answer.offers)
    if (each.series == "c") each = {"c", 1, SeriesVerdict::fenced, 0, 9};
  desk_.heard("a", answer);
  const auto lost = desk_.take_lost();
  ASSERT_THAT(lost, SizeIs(1));
  EXPECT_EQ(lost.front().series, "c");
  EXPECT_EQ(lost.front().higher, 9);
  EXPECT_EQ(desk_.take_dropped(), 1);
  EXPECT_EQ(desk_.published(), 1);
  desk_.publish({event(3, 2)});
  EXPECT_EQ(desk_.take_dropped(), 1);
  serve("b", 3);
  serve("a", 3);
  serve("b", 3);
  EXPECT_EQ(desk_.published(), 3);
}

TEST_F(MakerDeskTest, WhatAFormerOwnerStagedSomewhereIsOfferedFirstAndNumbersGoOnBehindIt) {
  desk_.claim("c", 5);
  serve("a");
  serve("b");
  auto talk = next("a");
  ASSERT_TRUE(talk);
  GatewayTalk books = answer_to(*talk, "a-token");
  books.claims.front().previous = 3;
  books.claims.front().others = 3;
  books.claims.front().last = {{kTopic, 4, 0, "four", 0}};
  books.claims.front().staged = {{3, {kTopic, 5, 0, "five", 8}}, {3, {kTopic, 7, 0, "nobody's", 9}}};
  desk_.heard("a", books);
  EXPECT_THAT(desk_.take_books(), IsEmpty());
  talk = next("b");
  ASSERT_TRUE(talk);
  books = answer_to(*talk, "b-token");
  books.claims.front().last = {{kTopic, 3, 0, "three", 0}};
  books.claims.front().staged = {{3, {kTopic, 4, 0, "four", 7}}};
  desk_.heard("b", books);
  const auto told = desk_.take_books();
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_EQ(told.front().previous, 3);
  EXPECT_EQ(told.front().since, 4);
  ASSERT_THAT(told.front().last, SizeIs(1));
  EXPECT_EQ(told.front().last.front().sequence, 5);
  talk = next("b");
  ASSERT_TRUE(talk);
  ASSERT_THAT(talk->offers, SizeIs(1));
  ASSERT_THAT(talk->offers.front().events, SizeIs(2));
  EXPECT_EQ(talk->offers.front().events.at(0).body, "four");
  EXPECT_EQ(talk->offers.front().events.at(1).body, "five");
  EXPECT_EQ(talk->offers.front().fence, 5);
}

TEST_F(MakerDeskTest, ASeriesThatIsAnothersByThePlanIsForgottenOnceAllIsTold) {
  open();
  desk_.publish({event(1, 1)});
  desk_.leave("c");
  clock_.ms += 120'000;
  look();
  EXPECT_EQ(desk_.series(), 1U) << "something of it is under way";
  clock_.ms += 200;
  for (int i = 0; i < 4; ++i) {
    serve("a");
    serve("b");
  }
  ASSERT_EQ(desk_.published(), 1U);
  clock_.ms += 30'000;
  desk_.publish({event(2, 2)});
  for (int i = 0; i < 4; ++i) {
    serve("a");
    serve("b");
  }
  EXPECT_EQ(desk_.published(), 2U) << "what came late";
  clock_.ms += 59'000;
  look();
  EXPECT_EQ(desk_.series(), 1U);
  clock_.ms += 2'000;
  look();
  EXPECT_EQ(desk_.series(), 0U);
  open(9);
  desk_.leave("c");
  clock_.ms += 1'000;
  open(10);
  clock_.ms += 120'000;
  look();
  EXPECT_EQ(desk_.series(), 1U) << "it has it again";
}

TEST_F(MakerDeskTest, SaysForWhichGatewayEventsWaitThatDoesNotAnswer) {
  open();
  EXPECT_EQ(desk_.waits_for(), "");
  desk_.publish({event(1, 1)});
  serve("a");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(desk_.waits_for(), "") << i;
    if (const auto talk = next("b")) desk_.failed("b", talk->number);
    clock_.ms += 1000;
  }
  EXPECT_EQ(desk_.waits_for(), "b");
  serve("b", 3);
  serve("a", 3);
  serve("b", 3);
  EXPECT_EQ(desk_.waits_for(), "");
  EXPECT_EQ(desk_.published(), 1U);
  desk_.publish({event(2, 2)});
  EXPECT_EQ(desk_.waits_for(), "") << "it has answered since";
}

TEST_F(MakerDeskTest, NobodyGoesOnWithWhatWasDroppedThoughNoGatewayKnowsWhyAnyMore) {
  open(2);
  desk_.publish({event(1, 1)});
  // One gateway alone has heard of the owner that came in between, and is gone with it.
  auto talk = next("a");
  ASSERT_TRUE(talk);
  GatewayTalk answer = answer_to(*talk, "a-token");
  answer.offers = {{"c", 2, SeriesVerdict::fenced, 0, 4}};
  desk_.heard("a", answer);
  ASSERT_THAT(desk_.take_lost(), SizeIs(1));
  EXPECT_EQ(desk_.published(), 1);
  desk_.see({{"b", {"b1", 2, true}}});
  desk_.claim("c", 7);
  std::vector<actors::SeriesBooks> told;
  for (int i = 0; i < 4 && told.empty(); ++i) {
    if (const auto claim = next("b")) {
      GatewayTalk books = answer_to(*claim, "b-token");
      for (ClaimAnswer& each : books.claims) each.previous = 2;
      desk_.heard("b", books);
    }
    told = desk_.take_books();
  }
  ASSERT_THAT(told, SizeIs(1));
  EXPECT_THAT(told.front().last, IsEmpty());
  // The maker noted fence 2: it must not number on behind an event that was dropped here.
  EXPECT_GT(told.front().since, 2);
  EXPECT_LE(told.front().since, 7);
}

TEST_F(MakerDeskTest, WhatAnotherOutboxHasAgainKeepsItsPlace) {
  open();
  desk_.publish({event(5, 1)});
  desk_.start_over();
  EXPECT_EQ(desk_.published(), 0);
  desk_.publish({event(1, 1)});
  EXPECT_EQ(desk_.waiting(), 1);
  serve("a", 2);
  serve("b", 2);
  serve("a", 2);
  serve("b", 2);
  EXPECT_EQ(desk_.published(), 1);
}

TEST_F(MakerDeskTest, WhatIsAnotherBodyByNowIsOfferedAnewWhateverWasUnderWay) {
  open();
  desk_.publish({event(5, 1), event(6, 1, "topic/n/t/c/r/")});
  const auto old = next("a");
  ASSERT_TRUE(old);
  ASSERT_THAT(old->offers, SizeIs(1));
  serve("b");
  desk_.start_over();
  desk_.publish({event(1, 1, kTopic, "another")});
  desk_.heard("a", answer_to(*old, "a-token"));
  // Nobody has the new body, so that nobody may commit.
  for (const char* gateway : {"a", "b"}) {
    const auto talk = next(gateway);
    ASSERT_TRUE(talk) << gateway;
    EXPECT_THAT(talk->commits, IsEmpty()) << gateway;
    ASSERT_THAT(talk->offers, SizeIs(1)) << gateway;
    ASSERT_THAT(talk->offers[0].events, SizeIs(2));
    EXPECT_EQ(talk->offers[0].events[0].body, "another");
    desk_.heard(gateway, answer_to(*talk, std::string(gateway) + "-token"));
  }
  serve("a");
  serve("b");
  EXPECT_EQ(desk_.published(), 1);
}

TEST_F(MakerDeskTest, WhatIsBeingCommittedStaysWhatItIs) {
  open();
  desk_.publish({event(5, 1)});
  serve("a");
  serve("b");
  const auto commit = next("a");
  ASSERT_TRUE(commit);
  ASSERT_THAT(commit->commits, SizeIs(1));
  desk_.start_over();
  desk_.publish({event(1, 1, kTopic, "another")});
  desk_.heard("a", answer_to(*commit, "a-token"));
  const auto other = next("b");
  ASSERT_TRUE(other);
  EXPECT_THAT(other->offers, IsEmpty()) << "the other gateway tells the same";
  EXPECT_THAT(other->commits, SizeIs(1));
  desk_.heard("b", answer_to(*other, "b-token"));
  EXPECT_EQ(desk_.published(), 1);
}

TEST(ShippingPublisher, HandsCopiesOnTogetherAndIsFullAtABeginning) {
  ShippingPublisher publisher({.most = 3, .patience = base::Duration(10)});
  int woken = 0;
  publisher.attach([&] { ++woken; });
  const std::string one = R"({"type":"dev.vigil.alert.v1","id":"E-0","data":{"episode":"E","phase":"new"}})";
  EXPECT_TRUE(publisher.publish(event(1, 1, kTopic, one)));
  EXPECT_TRUE(publisher.publish(event(2, 1, "topic/n/t/c/r/", one)));
  EXPECT_THAT(publisher.take().events, IsEmpty());
  EXPECT_TRUE(publisher.publish(event(3, 2)));
  EXPECT_EQ(woken, 1);
  EXPECT_FALSE(publisher.publish(event(4, 3)));
  auto taken = publisher.take();
  ASSERT_THAT(taken.events, SizeIs(1));
  EXPECT_THAT(taken.events.front(), SizeIs(2));
  publisher.serve();
  taken = publisher.take();
  EXPECT_THAT(taken.events, SizeIs(1));
  publisher.done(taken.epoch, 2);
  EXPECT_EQ(publisher.published(), 2);
  EXPECT_TRUE(publisher.publish(event(4, 3)));
  // Another outbox: what was said of the one before it says nothing of this one.
  publisher.start_over();
  publisher.done(taken.epoch, 4);
  EXPECT_EQ(publisher.published(), 0);
}

TEST(ShippingPublisher, WaitsForGatewaysForAWhile) {
  ShippingPublisher publisher({.most = 3, .patience = base::Duration(20'000)});
  EXPECT_TRUE(publisher.publish(event(1, 1)));
  std::thread gateway([&] { publisher.done(0, 1); });
  publisher.drain();
  gateway.join();
  EXPECT_EQ(publisher.published(), 1);
  ShippingPublisher alone({.most = 3, .patience = base::Duration(1)});
  EXPECT_TRUE(alone.publish(event(1, 1)));
  alone.drain();
  EXPECT_EQ(alone.published(), 0);
}

}  // namespace
}  // namespace vigil::fleet
