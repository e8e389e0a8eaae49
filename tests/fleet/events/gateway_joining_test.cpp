// What a gateway that comes takes of one that serves.
#include "fleet/events/gateway_joining.h"

#include <algorithm>

#include <gmock/gmock.h>

#include "tests/fleet/events/bare_gateways.h"

namespace vigil::fleet::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Not;
using ::testing::SizeIs;

using GatewayJoiningTest = GatewaysTest;

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
  EXPECT_EQ(other_.notes(), one_.notes());
  // What is history is told to nobody as news.
  EXPECT_THAT(other_.outbox->unacknowledged(10), IsEmpty());
  EXPECT_EQ(emptied_, 0);
}

TEST_F(GatewayJoiningTest, WhatIsNewOnceItServesItTellsItself) {
  come(one_);
  settle();
  claim(one_);
  tell({&one_}, "E", 0, "new");
  come(other_);
  std::vector<GatewayJoining::Ask> asks;
  for (int round = 0; round < 20 && other_.desk->mode() != GatewayMode::serving; ++round) {
    for (const GatewayJoining::Ask& each : asks)
      other_.joining->heard(each.to, one_.joining->answer(each.question));
    clock_.ms += 20;
    for (Gateway* gateway : {&one_, &other_}) gateway->joining->see(view_);
    asks = other_.joining->take_asks();
  }
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  // One event: staged by both, committed by the one, and by the other one when that has its answers.
  tell({&one_, &other_}, "E", 1, "update", /*commits=*/false);
  --sequence_;
  tell({&one_}, "E", 1, "update");
  for (const GatewayJoining::Ask& each : asks)
    other_.joining->heard(each.to, one_.joining->answer(each.question));
  --sequence_;
  tell({&other_}, "E", 1, "update");
  EXPECT_EQ(other_.events(), one_.events());
  EXPECT_THAT(other_.outbox->unacknowledged(10), SizeIs(2)) << "on both of its topics, to be published";
}

TEST_F(GatewayJoiningTest, WhatIsOverHereIsNotOpenAgainByOneThatIsBehind) {
  let_both_serve();
  tell({&one_, &other_}, "E", 0, "new");
  // Staged by both, committed by the other one alone before it is started again; and one event more.
  tell({&one_, &other_}, "E", 1, "update", /*commits=*/false);
  tell({&one_, &other_}, "E", 2, "end", /*commits=*/false);
  sequence_ -= 2;
  tell({&other_}, "E", 1, "update");
  tell({&other_}, "E", 2, "end");
  come(other_);
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(emptied_, 0);
  EXPECT_THAT(other_.outbox->notes(), Not(Contains(Key("episode/E"))));
  EXPECT_THAT(one_.outbox->notes(), Contains(Key("episode/E")));
  sequence_ -= 2;
  tell({&one_}, "E", 1, "update");
  tell({&one_}, "E", 2, "end");
  EXPECT_EQ(other_.notes(), one_.notes());
}

TEST_F(GatewayJoiningTest, WhatIsOpenHereStaysOpenByOneThatIsBehind) {
  let_both_serve();
  tell({&one_, &other_}, "E", 0, "new", /*commits=*/false);
  --sequence_;
  tell({&other_}, "E", 0, "new");
  come(other_);
  settle();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_THAT(other_.outbox->notes(), Contains(Key("episode/E")));
  --sequence_;
  tell({&one_}, "E", 0, "new");
  EXPECT_EQ(other_.notes(), one_.notes());
}

TEST_F(GatewayJoiningTest, WhatItReadsIsNoNewsWhereATopicGoesOnBehindAGapEither) {
  third_.desk->join("token");
  third_.desk->take(
      {{kRule, 1, 0, body("E", 0, "new", kRule), 1}, {kCopy, 3, 0, body("E", 0, "new", kCopy), 1}});
  EXPECT_THAT(third_.events(), SizeIs(2));
  EXPECT_THAT(third_.outbox->unacknowledged(10), IsEmpty());
}

TEST_F(GatewayJoiningTest, WaitsForNoneThatHasNoOutbox) {
  come(one_);
  settle();
  claim(one_);
  tell({&one_}, "E", 0, "new");
  come(other_);
  view_["g3"] = {"its disk does not open", ++records_, false};
  FirstPromise promise;
  for (int i = 0; i < 40; ++i) {
    for (Gateway* gateway : {&one_, &other_}) {
      gateway->joining->see(view_);
      for (const GatewayJoining::Ask& ask : gateway->joining->take_asks())
        gateway->joining->heard(ask.to, ask.to == "g3"
                                            ? answer_without_outbox(ask.question, "g3", view_, promise)
                                            : named(ask.to).joining->answer(ask.question));
    }
    clock_.ms += 20;
  }
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  EXPECT_EQ(other_.events(), one_.events());
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

TEST_F(GatewayJoiningTest, WhatIsNotReadInTimeIsNamed) {
  come(one_);
  settle();
  claim(one_);
  for (int i = 0; i < 3; ++i) tell({&one_}, "E", i, "update");
  come(other_);
  while (other_.desk->mode() != GatewayMode::joining) ask(other_, {&one_});
  tell({&one_}, "E", 3, "end");
  for (int i = 0; i < 2; ++i) ask(other_, {&one_});
  // It is admitted, and the source tells nothing more.
  ask(other_, {});
  ASSERT_EQ(other_.desk->mode(), GatewayMode::joining);
  ASSERT_EQ(other_.joining->trouble(), "it reads what it lacks from g1");
  clock_.ms += 15'001;
  other_.joining->take_asks();
  EXPECT_EQ(other_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(other_.joining->trouble(),
            "it has not read all that g1 committed meanwhile: it is at position 6 of 8");
  settle();
  EXPECT_EQ(other_.joining->trouble(), "");
  EXPECT_EQ(other_.events(), one_.events());
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
  EXPECT_EQ(other_.notes(), one_.notes());
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

TEST_F(GatewayJoiningTest, TwoThatComeAtOnceHaveEachOthersWord) {
  come(one_);
  settle();
  come(other_);
  come(third_);
  while (third_.desk->mode() != GatewayMode::joining) ask(third_, {&one_});
  // It asks the other one, which has not begun to come, and then has all that it waits for.
  ask(third_, {&other_});
  ask(third_, {&one_});
  ask(third_, {&one_});
  ASSERT_EQ(third_.desk->mode(), GatewayMode::joining);
  ASSERT_EQ(other_.desk->mode(), GatewayMode::away);
  for (int i = 0; i < 20; ++i) ask(other_, {&one_, &third_});
  ask(third_, {});
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
  ASSERT_EQ(third_.desk->mode(), GatewayMode::serving) << third_.joining->trouble();
  // Without the one that both have read from, nobody else could tell a maker of the other one.
  go(one_);
  for (Gateway* gateway : all_) gateway->joining->see(view_);
  claim(third_);
  MakerTalk without = talk(third_);
  std::erase_if(without.all, [](const GatewayTenure& each) { return each.gateway != "g3"; });
  without.offers = {{"c", 1, {{kRule, 1, 0, body("E", 0, "new", kRule), 1}}}};
  EXPECT_EQ(third_.desk->answer(without).verdict, TalkVerdict::lacks);
}

TEST_F(GatewayJoiningTest, WhatARunOfAMakerBeforeThisOneSentAndComesLateIsNotTaken) {
  come(one_);
  settle();
  claim(one_);
  // Its disk is gone, so that it numbers another event in the place of one that was under way.
  MakerTalk late = talk(one_);
  late.offers = {{"c", 1, {{kRule, 1, 0, body("E", 0, "new", kRule), 1}}}};
  MakerTalk now = talk(one_);
  now.session = "s2";
  now.claims = {{"c", 1}};
  now.offers = {{"c", 1, {{kRule, 1, 0, body("F", 0, "new", kRule), 1}}}};
  ASSERT_EQ(one_.desk->answer(now).offers.at(0).verdict, SeriesVerdict::done);
  EXPECT_EQ(one_.desk->answer(late).offers.at(0).verdict, SeriesVerdict::claim);
  now.claims.clear();
  now.offers.clear();
  now.commits = {{"c", 1, {{{{kRule, 1, fingerprint(body("F", 0, "new", kRule))}}, false}}}};
  ASSERT_EQ(one_.desk->answer(now).commits.at(0).verdict, SeriesVerdict::done);
  EXPECT_THAT(one_.events(), ElementsAre(kRule + std::to_string(1) + body("F", 0, "new", kRule)));
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

TEST_F(GatewaysTest, WhatAnotherOneHasStagedIsCopiedThoughItIsMoreThanOneMayTakeOfMakers) {
  GatewayDesk desk({"g9", {.staged_bytes = 1, .staged_of_series = 1}}, *third_.outbox);
  desk.join("token");
  SeriesCopy copy;
  copy.series = "c";
  for (std::uint64_t sequence = 1; sequence <= 3; ++sequence)
    copy.staged.push_back(
        {1, {kRule, sequence, 0, body("E", static_cast<int>(sequence), "update", kRule), 1}});
  desk.take({copy}, /*with_notes=*/false);
  EXPECT_EQ(desk.books().staged_events(), 3U);
}

TEST_F(GatewaysTest, ACommitOverAGapIsCounted) {
  restart({&one_});
  settle();
  claim(one_);
  tell({&one_}, "E", 0, "new");
  EXPECT_THAT(one_.desk->take_gaps(), ::testing::IsEmpty());
  MakerTalk talks = talk(one_);
  talks.offers = {{"c", 1, {{kRule, 5, 0, body("E", 5, "update", kRule), 1}}}};
  talks.commits = {{"c", 1, {{{{kRule, 5, fingerprint(body("E", 5, "update", kRule))}}, false}}}};
  EXPECT_EQ(one_.desk->answer(talks).commits.at(0).verdict, SeriesVerdict::gap);
  EXPECT_THAT(one_.desk->take_gaps(), ::testing::IsEmpty());
  talks.commits.front().units.front().over_gap = true;
  EXPECT_EQ(one_.desk->answer(talks).commits.at(0).verdict, SeriesVerdict::done);
  EXPECT_THAT(one_.desk->take_gaps(), ::testing::ElementsAre(TopicGap{kRule, 1, 5}));
  EXPECT_THAT(one_.desk->take_gaps(), ::testing::IsEmpty());
}

}  // namespace
}  // namespace vigil::fleet::testing
