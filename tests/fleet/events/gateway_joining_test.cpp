// Two gateways without a net between them: what the one that comes takes of the other.
#include "fleet/events/gateway_joining.h"

#include <gmock/gmock.h>

#include "tests/fleet/events/events_world.h"

namespace vigil::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::TestClock;

constexpr const char* kRule = "alert/t/c/r/";
constexpr const char* kCopy = "topic/n/t/c/r/";

std::string body(const std::string& episode, int number, const std::string& phase, const std::string& topic) {
  return R"({"type":"dev.vigil.alert.v1","id":")" + episode + '-' + std::to_string(number) +
         R"(","time":"2026-01-01T00:00:00Z","data":{"episode":")" + episode + R"(","phase":")" + phase +
         R"(","on":")" + topic + "\"}}";
}

struct Gateway {
  Gateway(std::string the_name, const base::Clock& the_clock) : name(std::move(the_name)), clock(the_clock) {
    open();
  }
  void open() {
    joining.reset();
    desk.reset();
    desk.emplace(GatewayDesk::Options{name}, *outbox);
    joining.emplace(
        GatewayJoining::Options{.name = name,
                                .token = [this] { return name + std::to_string(1000 + ++tokens); },
                                .pause = base::Duration(10)},
        *desk, clock);
  }
  std::vector<std::string> events() const {
    std::vector<std::string> all;
    actors::ReplayQuery query;
    query.topics = {""};
    query.max_events = 100'000;
    query.max_bytes = query.max_scanned = 100'000'000;
    for (const actors::OutboxEvent& event : outbox->replay(query).events)
      all.push_back(event.topic + std::to_string(event.sequence) + event.body);
    return all;
  }

  std::string name;
  const base::Clock& clock;
  std::unique_ptr<actors::Outbox> outbox = actors::make_memory_outbox();
  std::optional<GatewayDesk> desk;
  std::optional<GatewayJoining> joining;
  int tokens = 0;
};

class GatewayJoiningTest : public ::testing::Test {
 protected:
  /// Until both have nothing to ask any more.
  void settle() {
    for (int round = 0; round < 200; ++round) {
      for (Gateway* gateway : {&one_, &other_}) {
        gateway->joining->see(view_);
        for (GatewayJoining::Ask& ask : gateway->joining->take_asks()) {
          Gateway& asked = ask.to == one_.name ? one_ : other_;
          ++asks_;
          if (view_.contains(asked.name) && asked.desk->born() == view_.at(asked.name).born) {
            gateway->joining->heard(ask.to, asked.joining->answer(ask.question));
          } else {
            gateway->joining->failed(ask.to, ask.question.number);
          }
          if (gateway->joining->wants_empty_outbox()) {
            gateway->outbox = actors::make_memory_outbox();
            gateway->open();
            ++emptied_;
            break;
          }
        }
        const auto own = view_.find(gateway->name);
        if (own != view_.end()) own->second.serves = gateway->desk->mode() == GatewayMode::serving;
      }
      clock_.ms += 5;
    }
  }
  void come(Gateway& gateway) {
    gateway.open();
    view_[gateway.name] = {gateway.name + std::to_string(++records_), records_, false};
  }
  void go(Gateway& gateway) { view_.erase(gateway.name); }

  MakerTalk talk(const Gateway& gateway) {
    MakerTalk talk;
    talk.maker = "m";
    talk.session = "s";
    talk.born = gateway.desk->born();
    talk.token = gateway.desk->token();
    for (const Gateway* each : {&one_, &other_})
      if (each->desk->mode() != GatewayMode::away)
        talk.all.push_back({each->name, each->desk->born(), each->desk->token()});
    return talk;
  }
  void claim(Gateway& gateway, std::uint64_t fence = 1) {
    MakerTalk claims = talk(gateway);
    claims.claims = {{"c", fence}};
    ASSERT_THAT(gateway.desk->answer(claims).claims, SizeIs(1));
  }
  /// An event on two topics, staged at all that serve, and committed if that is wanted.
  void tell(const std::vector<Gateway*>& gateways, const std::string& episode, int number,
            const std::string& phase, bool commits = true) {
    const std::uint64_t sequence = ++sequence_;
    for (Gateway* gateway : gateways) {
      MakerTalk offer = talk(*gateway);
      offer.offers = {{"c", 1, {}}};
      for (const char* topic : {kRule, kCopy})
        offer.offers.front().events.push_back(
            {topic, sequence, 0, body(episode, number, phase, topic), sequence});
      if (commits) offer.commits = {{"c", 1, {{{{kRule, sequence, 0}, {kCopy, sequence, 0}}, false}}}};
      const GatewayTalk answer = gateway->desk->answer(offer);
      ASSERT_EQ(answer.offers.at(0).verdict, SeriesVerdict::done);
      if (commits) {
        ASSERT_EQ(answer.commits.at(0).verdict, SeriesVerdict::done);
      }
    }
  }

  TestClock clock_;
  Gateway one_{"g1", clock_}, other_{"g2", clock_};
  GatewayView view_;
  std::uint64_t records_ = 0;
  std::uint64_t sequence_ = 0;
  int asks_ = 0;
  int emptied_ = 0;
};

TEST_F(GatewayJoiningTest, TheFirstServesAtOnceAndAnEmptyOneGetsAllThatItHas) {
  come(one_);
  settle();
  ASSERT_EQ(one_.desk->mode(), GatewayMode::serving);
  claim(one_);
  for (int i = 0; i < 700; ++i) tell({&one_}, "E" + std::to_string(i / 2), i % 2, i % 2 == 0 ? "new" : "end");
  tell({&one_}, "open", 0, "new");
  tell({&one_}, "open", 1, "update", /*commits=*/false);
  come(other_);
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(other_.events(), one_.events());
  EXPECT_THAT(other_.events(), SizeIs(1402));
  EXPECT_NE(other_.desk->books().staged(kRule, 702), nullptr);
  EXPECT_NE(other_.desk->books().staged(kCopy, 702), nullptr);
  ASSERT_NE(other_.desk->books().tenure("c"), nullptr);
  EXPECT_EQ(*other_.desk->books().tenure("c"), *one_.desk->books().tenure("c"));
  EXPECT_EQ(other_.outbox->notes(), one_.outbox->notes());
  // What is history is told to nobody as news.
  EXPECT_THAT(other_.outbox->unacknowledged(10), IsEmpty());
  EXPECT_EQ(emptied_, 0);
}

TEST_F(GatewayJoiningTest, HowMuchItLacksIsKnownUntilItServes) {
  come(one_);
  settle();
  claim(one_);
  for (int i = 0; i < 3; ++i) tell({&one_}, "E", i, "update");
  EXPECT_EQ(one_.joining->behind(), 0U);
  come(other_);
  for (Gateway* gateway : {&one_, &other_}) gateway->joining->see(view_);
  EXPECT_EQ(other_.joining->behind(), 0U) << "nobody has told yet";
  for (const GatewayJoining::Ask& ask : other_.joining->take_asks())
    other_.joining->heard(ask.to, one_.joining->answer(ask.question));
  EXPECT_EQ(other_.joining->behind(), 6U);
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(other_.joining->behind(), 0U);
  tell({&one_}, "E", 3, "end");
  EXPECT_EQ(other_.joining->behind(), 0U) << "makers bring it what is new";
}

TEST_F(GatewayJoiningTest, EventsAreCountedByWhatBecameOfThem) {
  come(one_);
  settle();
  claim(one_);
  using actors::GatewayCounts;
  tell({&one_}, "E", 0, "new", /*commits=*/false);
  EXPECT_EQ(one_.desk->take_counts(), (GatewayCounts{.stored = 2}));
  EXPECT_EQ(one_.desk->take_counts(), GatewayCounts());
  --sequence_;
  tell({&one_}, "E", 0, "new");
  EXPECT_EQ(one_.desk->take_counts(), (GatewayCounts{.committed = 2, .duplicate = 2}));
  --sequence_;
  tell({&one_}, "E", 0, "new");
  EXPECT_EQ(one_.desk->take_counts(), (GatewayCounts{.duplicate = 2})) << "committed again";
  claim(one_, 5);
  MakerTalk late = talk(one_);
  late.offers = {{"c", 1, {{kRule, 2, 0, body("E", 1, "end", kRule), 2}}}};
  late.commits = {{"c", 1, {{{{kRule, 2, 0}, {kCopy, 2, 0}}, false}}}};
  ASSERT_EQ(one_.desk->answer(late).offers.at(0).verdict, SeriesVerdict::fenced);
  EXPECT_EQ(one_.desk->take_counts(), (GatewayCounts{.refused = 3}));
  late.offers.front().series = "d";
  late.commits.clear();
  ASSERT_EQ(one_.desk->answer(late).offers.at(0).verdict, SeriesVerdict::claim);
  EXPECT_EQ(one_.desk->take_counts(), GatewayCounts()) << "to be claimed first, and not refused";
  come(other_);
  settle();
  EXPECT_EQ(other_.desk->take_counts(), (GatewayCounts{.committed = 2})) << "read from the other one";
}

TEST_F(GatewayJoiningTest, TheHighestFenceOfACameraIsKept) {
  come(one_);
  settle();
  EXPECT_EQ(one_.desk->books().highest_fence(), 0U);
  claim(one_, 5);
  MakerTalk claims = talk(one_);
  claims.claims = {{"d", 7}, {"a", 3}, {"process/n1/", 900}};
  one_.desk->answer(claims);
  EXPECT_EQ(one_.desk->books().highest_fence(), 7U) << "a node's own series goes by revisions";
  come(other_);
  settle();
  EXPECT_EQ(other_.desk->books().highest_fence(), 7U);
  one_.open();
  EXPECT_EQ(one_.desk->books().highest_fence(), 7U) << "on its disk";
}

TEST_F(GatewayJoiningTest, OneThatWasAwayReadsWhatItMissedAndNothingElse) {
  come(one_);
  settle();
  come(other_);
  settle();
  claim(one_);
  claim(other_);
  for (int i = 0; i < 1000; ++i) tell({&one_, &other_}, "E", i, "update");
  go(other_);
  settle();
  for (int i = 1000; i < 1005; ++i) tell({&one_}, "E", i, "update");
  come(other_);
  const int before = asks_;
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(other_.events(), one_.events());
  EXPECT_EQ(other_.outbox->notes(), one_.outbox->notes());
  EXPECT_EQ(emptied_, 0);
  EXPECT_LT(asks_ - before, 20);
}

TEST_F(GatewayJoiningTest, WhatIsForgottenThereIsNotLackedHere) {
  config::RetentionClock ages(clock_);
  one_.outbox = actors::make_memory_outbox(&ages);
  come(one_);
  settle();
  claim(one_);
  for (int i = 0; i < 10; ++i) tell({&one_}, "E", i, "update");
  one_.outbox->acknowledge(std::vector<std::uint64_t>{1, 2, 3, 4, 5, 6});
  clock_.ms += 3'600'000;
  ages.now();
  clock_.ms += 3'600'000;
  ASSERT_EQ(one_.outbox->prune(base::Duration(1000)), 6);
  come(other_);
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(other_.events(), one_.events());
  EXPECT_EQ(other_.outbox->last_sequence(kRule), 10);
}

TEST_F(GatewayJoiningTest, OneThatWentAnotherWayBeginsAnew) {
  come(one_);
  settle();
  claim(one_);
  tell({&one_}, "E", 0, "new");
  tell({&one_}, "E", 1, "end");
  // Another one with another second event, and one more.
  come(other_);
  go(one_);
  settle();
  claim(other_);
  sequence_ = 0;
  tell({&other_}, "E", 0, "new");
  tell({&other_}, "F", 1, "end");
  tell({&other_}, "G", 0, "new");
  come(one_);
  settle();
  EXPECT_EQ(emptied_, 1);
  ASSERT_EQ(one_.desk->mode(), GatewayMode::serving) << one_.joining->trouble();
  EXPECT_EQ(one_.events(), other_.events());
}

TEST_F(GatewayJoiningTest, OfAFleetThatIsStartedAnewTheOneThatHasTheMostIsTheFirst) {
  come(other_);
  settle();
  claim(other_);
  tell({&other_}, "E", 0, "new");
  go(other_);
  // The older record is the one that has less.
  one_.open();
  view_["g1"] = {"g1again", 100, false};
  other_.open();
  view_["g2"] = {"g2again", 101, false};
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving);
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving);
  EXPECT_THAT(one_.events(), SizeIs(2));
  EXPECT_EQ(one_.events(), other_.events());
}

TEST_F(GatewayJoiningTest, WaitsForOneThatHoldsALeaseAndDoesNotAnswer) {
  view_["g2"] = {"another one's", 1, false};
  come(one_);
  view_["g1"].created = 2;
  for (int i = 0; i < 5; ++i) {
    one_.joining->see(view_);
    for (const GatewayJoining::Ask& ask : one_.joining->take_asks())
      one_.joining->failed(ask.to, ask.question.number);
    clock_.ms += 1000;
  }
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(one_.joining->trouble(), "g2 holds a lease and does not answer");
  go(other_);
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving);
}

TEST_F(GatewayJoiningTest, ARecordThatWasGoneEndsItsTimeOfServing) {
  come(one_);
  settle();
  come(other_);
  settle();
  const std::string token = other_.desk->token();
  MakerTalk late = talk(other_);
  view_["g2"].born = "g2 again";
  other_.joining->see(view_);
  EXPECT_EQ(other_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(other_.desk->answer(late).verdict, TalkVerdict::away);
  settle();
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving);
  EXPECT_NE(other_.desk->token(), token);
  // Nor does the other one take what is not given to this one.
  claim(one_);
  MakerTalk without = talk(one_);
  without.all.pop_back();
  without.offers = {{"c", 1, {{kRule, 1, 0, body("E", 0, "new", kRule), 1}}}};
  EXPECT_EQ(one_.desk->answer(without).verdict, TalkVerdict::lacks);
}

}  // namespace
}  // namespace vigil::fleet
