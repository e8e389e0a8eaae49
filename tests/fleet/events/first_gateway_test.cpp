// Which of the gateways of a fleet that is started anew is the first that serves.
#include <optional>

#include <gmock/gmock.h>

#include "fleet/events/gateway_joining.h"
#include "tests/fleet/events/bare_gateways.h"

namespace vigil::fleet::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

using FirstGatewayTest = GatewaysTest;

TEST_F(FirstGatewayTest, OfAFleetThatIsStartedAnewTheOneThatHasTheMostIsTheFirst) {
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

TEST_F(FirstGatewayTest, WhoeverOthersWentOnWithoutIsNotTheFirstThoughItHasMore) {
  for (const bool is_oldest : {true, false}) {
    for (Gateway* gateway : {&one_, &other_}) gateway->outbox = actors::make_memory_outbox();
    restart({&one_, &other_});
    settle();
    claim(one_);
    claim(other_);
    // What a former owner left at one of them, and nobody saw.
    sequence_ = 0;
    for (int i = 0; i < 10; ++i) tell({&other_}, "E", i, "update", /*commits=*/false);
    go(other_);
    settle();
    sequence_ = 0;
    tell({&one_}, "F", 0, "new");
    const std::vector<std::string> seen = one_.events();
    ASSERT_LT(one_.desk->has(), other_.desk->has());
    restart(is_oldest ? std::vector{&other_, &one_} : std::vector{&one_, &other_});
    settle();
    for (const Gateway* gateway : {&one_, &other_}) {
      EXPECT_EQ(gateway->desk->mode(), GatewayMode::serving) << gateway->joining->trouble();
      EXPECT_EQ(gateway->events(), seen);
    }
  }
}

TEST_F(FirstGatewayTest, WhomAGatewayWentOnWithoutIsKnownToThoseThatReadFromIt) {
  let_both_serve();
  for (int i = 0; i < 10; ++i) tell({&other_}, "E", i, "update", /*commits=*/false);
  go(other_);
  settle();
  come(third_);
  settle();
  claim(third_);
  sequence_ = 0;
  tell({&one_, &third_}, "F", 0, "new");
  const std::vector<std::string> seen = third_.events();
  ASSERT_THAT(seen, SizeIs(2));
  // The one that knew it by itself is gone with its disk.
  one_.outbox = actors::make_memory_outbox();
  restart({&other_, &one_, &third_});
  settle();
  for (const Gateway* gateway : all_) EXPECT_EQ(gateway->events(), seen) << gateway->name;
}

TEST_F(FirstGatewayTest, OneThatCameBackAndDidNotServeYetIsNotTheFirst) {
  let_both_serve();
  for (int i = 0; i < 10; ++i) tell({&other_}, "E", i, "update", /*commits=*/false);
  go(other_);
  come(other_);
  // It is admitted, and the power is gone before it has read all.
  while (one_.desk->peers().empty() || one_.desk->peers().at("g2").token != other_.desk->token())
    ask(other_, {&one_});
  ASSERT_EQ(other_.desk->mode(), GatewayMode::joining);
  go(other_);
  for (Gateway* gateway : all_) gateway->joining->see(view_);
  sequence_ = 0;
  tell({&one_}, "F", 0, "new");
  const std::vector<std::string> seen = one_.events();
  restart({&other_, &one_});
  expect_both_to_have(seen);
}

TEST_F(FirstGatewayTest, OneThatWentOnWithoutAnotherOneAndIsBehindByNowIsNotTheFirst) {
  let_both_serve();
  go(other_);
  settle();
  for (int i = 0; i < 10; ++i) tell({&one_}, "E", i, "update", /*commits=*/false);
  // That one comes back, and the first is the one that is away.
  come(other_);
  settle();
  go(one_);
  settle();
  sequence_ = 0;
  claim(other_, 2);
  MakerTalk without = talk(other_);
  without.claims = {{"c", 2}};
  without.offers = {{"c", 2, {{kRule, 1, 0, body("F", 0, "new", kRule), 1}}}};
  without.commits = {{"c", 2, {{{{kRule, 1, fingerprint(body("F", 0, "new", kRule))}}, false}}}};
  ASSERT_EQ(other_.desk->answer(without).commits.at(0).verdict, SeriesVerdict::done);
  const std::vector<std::string> seen = other_.events();
  restart({&one_, &other_});
  expect_both_to_have(seen);
}

TEST_F(FirstGatewayTest, WaitsForOneThatHoldsALeaseAndDoesNotAnswer) {
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

TEST_F(FirstGatewayTest, WaitsSomeTimeForOneWhoseOutboxCannotBeRead) {
  come(one_);
  view_["g2"] = {"another one's", 3, false};
  FirstPromise promise;
  const auto refuse = [&] {
    one_.joining->see(view_);
    for (const GatewayJoining::Ask& ask : one_.joining->take_asks()) {
      one_.joining->heard(ask.to, answer_without_outbox(ask.question, "g2", view_, promise));
    }
    clock_.ms += 1000;
  };
  for (int i = 0; i < 9; ++i) refuse();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(one_.joining->trouble(), "g2 cannot say what it has");
  for (int i = 0; i < 3; ++i) refuse();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving);
  // Though its record is the oldest.
  one_.open();
  view_["g1"] = {"g1again", 4, false};
  for (int i = 0; i < 9; ++i) refuse();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  for (int i = 0; i < 4; ++i) refuse();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving);
  EXPECT_FALSE(promise.is_free()) << "it must not begin as the first when it can";
}

/// The oldest lacks its outbox for so long that the next one decides, and has it again before that one does.
TEST_F(FirstGatewayTest, OfTwoThatDecideOneAloneHasTheWordOfAll) {
  restart({&one_, &other_, &third_});
  FirstPromise promise;
  for (int i = 0; i < 14; ++i) {
    for (Gateway* gateway : all_) gateway->joining->see(view_);
    clock_.ms += 1000;
    for (const GatewayJoining::Ask& ask : other_.joining->take_asks()) {
      // Nothing of what would let it decide comes from the third one yet.
      if (ask.to == "g1") {
        other_.joining->heard("g1", answer_without_outbox(ask.question, "g1", view_, promise));
      } else {
        other_.joining->failed(ask.to, ask.question.number);
      }
    }
  }
  ASSERT_FALSE(promise.is_free());
  one_.joining.emplace(
      GatewayJoining::Options{.name = "g1",
                              .token = [this](const std::string& after) { return one_.token(after); },
                              .pause = base::Duration(10)},
      *one_.desk, clock_, promise);
  // It asks first of all now, and has a word of nobody.
  ask(one_, {&other_, &third_});
  ask(one_, {&other_, &third_});
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  settle();
  for (const Gateway* gateway : all_)
    EXPECT_EQ(gateway->desk->mode(), GatewayMode::serving) << gateway->joining->trouble();
}

TEST_F(FirstGatewayTest, WhoGaveItsWordToOneThatHasNoOutboxAnyMoreDecidesAllTheSame) {
  restart({&one_, &other_});
  for (Gateway* gateway : {&one_, &other_}) gateway->joining->see(view_);
  // Its disk fails before it has the answer, and that it decides no more does not come through.
  for (const GatewayJoining::Ask& ask : one_.joining->take_asks()) other_.joining->answer(ask.question);
  ASSERT_FALSE(other_.joining->promise().is_free());
  FirstPromise promise = one_.joining->promise();
  for (int i = 0; i < 14; ++i) {
    other_.joining->see(view_);
    for (const GatewayJoining::Ask& ask : other_.joining->take_asks())
      other_.joining->heard("g1", answer_without_outbox(ask.question, "g1", view_, promise));
    clock_.ms += 1000;
  }
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
}

/// What that one said may be under way still, and be followed here.
TEST_F(FirstGatewayTest, WhoGaveItsWordDecidesOnlyOnceThatOneDoesNoMore) {
  restart({&one_, &other_});
  PeerQuestion decides;
  decides.from = "g2";
  decides.born = view_.at("g2").born;
  decides.after = view_.at("g2").created;
  decides.token = "g20000";
  FirstPromise promise;
  ASSERT_TRUE(promise.hear(decides, view_));
  one_.joining.emplace(
      GatewayJoining::Options{.name = "g1",
                              .token = [this](const std::string& after) { return one_.token(after); },
                              .pause = base::Duration(10)},
      *one_.desk, clock_, promise);
  ask(one_, {&other_});
  ask(one_, {&other_});
  EXPECT_EQ(one_.desk->mode(), GatewayMode::away);
  EXPECT_EQ(other_.desk->mode(), GatewayMode::away);
  settle();
  EXPECT_EQ(one_.desk->mode(), GatewayMode::serving) << one_.joining->trouble();
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving) << other_.joining->trouble();
}

TEST_F(FirstGatewayTest, WhoServesWithAClockThatWentBackHasServedLater) {
  one_.tokens = 500;
  restart({&one_, &other_});
  settle();
  go(one_);
  settle();
  one_.tokens = 0;
  come(one_);
  settle();
  ASSERT_EQ(one_.desk->mode(), GatewayMode::serving);
  claim(one_);
  claim(other_);
  // More than what anybody saw.
  for (int i = 0; i < 10; ++i) tell({&other_}, "E", i, "update", /*commits=*/false);
  go(other_);
  settle();
  sequence_ = 0;
  tell({&one_}, "F", 0, "new");
  const std::vector<std::string> seen = one_.events();
  restart({&other_, &one_});
  expect_both_to_have(seen);
}

TEST_F(FirstGatewayTest, WhoIsToldLateToBeTheFirstIsNot) {
  for (const bool is_gone : {true, false}) {
    for (Gateway* gateway : all_) gateway->outbox = actors::make_memory_outbox();
    restart({&other_});
    settle();
    claim(other_);
    sequence_ = 0;
    tell({&other_}, "E", 0, "new");
    restart({&one_, &third_, &other_});
    for (Gateway* gateway : all_) gateway->joining->see(view_);
    std::optional<PeerQuestion> late;
    for (int i = 0; i < 5 && !late; ++i) {
      clock_.ms += 20;
      for (GatewayJoining::Ask& ask : one_.joining->take_asks()) {
        if (ask.question.kind == PeerQuestionKind::nominate) {
          ASSERT_EQ(ask.to, "g2");
          late = ask.question;
        } else {
          one_.joining->heard(ask.to, named(ask.to).joining->answer(ask.question));
        }
      }
    }
    ASSERT_TRUE(late);
    // The one that says it is gone, or was started again, and somebody else may be told so by now.
    Gateway& next = is_gone ? third_ : one_;
    if (is_gone) {
      go(one_);
    } else {
      one_.open();
      view_["g1"].born = "another run";
    }
    ask(next, {&other_});
    EXPECT_NE(other_.joining->answer(*late).mode, GatewayMode::serving);
    settle();
    for (const Gateway* gateway : {&next, &other_}) EXPECT_EQ(gateway->desk->mode(), GatewayMode::serving);
  }
}

TEST_F(FirstGatewayTest, OneThatIsStartedAloneGoesOnWithoutThoseThatServedBesideIt) {
  let_both_serve();
  for (int i = 0; i < 10; ++i) tell({&one_}, "E", i, "update", /*commits=*/false);
  restart({&other_});
  settle();
  ASSERT_NE(other_.desk->mode(), GatewayMode::serving) << "the other one may come, and have more";
  EXPECT_THAT(other_.joining->trouble(), HasSubstr("waits for g1, which served beside g2 last"));
  clock_.ms += 10'000;
  settle();
  claim(other_);
  sequence_ = 0;
  tell({&other_}, "F", 0, "new");
  const std::vector<std::string> seen = other_.events();
  restart({&one_, &other_});
  expect_both_to_have(seen);
}

TEST_F(FirstGatewayTest, WhoServedWhileOthersTookItForGoneIsNotTheFirstAgain) {
  let_both_serve();
  for (int i = 0; i < 10; ++i) tell({&one_}, "E", i, "update", /*commits=*/false);
  restart({&one_, &other_});
  const GatewayView before = view_;
  go(one_);
  // It does not hear of that, and makes itself the first, as the others do without it.
  one_.joining->see(before);
  other_.joining->see(before);
  for (const GatewayJoining::Ask& ask : one_.joining->take_asks())
    one_.joining->heard(ask.to, other_.joining->answer(ask.question));
  ASSERT_EQ(one_.desk->mode(), GatewayMode::serving);
  other_.joining->see(view_);
  other_.joining->take_asks();
  clock_.ms += 10'000;
  other_.joining->take_asks();
  ASSERT_EQ(other_.desk->mode(), GatewayMode::serving);
  view_["g1"] = {"found again", ++records_, false};
  for (int i = 0; i < 2; ++i) ask(one_, {&other_});
  ASSERT_EQ(one_.desk->mode(), GatewayMode::away);
  sequence_ = 0;
  claim(other_);
  tell({&other_}, "F", 0, "new");
  const std::vector<std::string> seen = other_.events();
  restart({&one_, &other_});
  expect_both_to_have(seen);
}

TEST_F(FirstGatewayTest, WhatWasAnsweredBeforeItWasTheOldestDoesNotCount) {
  restart({&one_, &other_, &third_});
  for (Gateway* gateway : all_) gateway->joining->see(view_);
  std::optional<PeerAnswer> answer;
  for (const GatewayJoining::Ask& ask : other_.joining->take_asks())
    if (ask.to == "g3") answer = third_.joining->answer(ask.question);
  ASSERT_TRUE(answer);
  go(one_);
  other_.joining->see(view_);
  // Since then the one that is gone may have told that one to be the first.
  other_.joining->heard("g3", *answer);
  EXPECT_EQ(other_.desk->mode(), GatewayMode::away);
  settle();
  EXPECT_EQ(other_.desk->mode(), GatewayMode::serving);
}

TEST_F(FirstGatewayTest, AnOutboxThatIsAnotherOneByNowHasNotServed) {
  restart({&one_});
  settle();
  one_.open();
  EXPECT_FALSE(one_.desk->books().served().token.empty());
  std::string note = one_.outbox->notes().at("gateway/served");
  one_.outbox = actors::make_memory_outbox();
  one_.outbox->append({}, std::vector<actors::OutboxNote>{{"gateway/served", note}});
  one_.open();
  EXPECT_EQ(one_.desk->books().served(), ServingTime());
}

TEST(FirstPromise, IsOfOneUntilThatOneIsGoneOrDoesNotDecideAnyMore) {
  GatewayView view = {{"old", {"o1", 1, false}}, {"young", {"y1", 2, false}}};
  const auto question = [&](const std::string& from, std::uint64_t after, const std::string& token = "t1") {
    PeerQuestion asked;
    asked.from = from;
    asked.born = view.at(from).born;
    asked.token = token;
    asked.after = after;
    return asked;
  };
  FirstPromise promise;
  EXPECT_TRUE(promise.hear(question("young", 1), view)) << "it does not decide";
  EXPECT_TRUE(promise.is_free());
  EXPECT_TRUE(promise.hear(question("old", 1), view));
  EXPECT_TRUE(promise.is_of(question("old", 1)));
  EXPECT_FALSE(promise.is_of(question("old", 1, "another attempt")));
  EXPECT_TRUE(promise.hear(question("young", 2), view)) << "without the older one";
  EXPECT_FALSE(promise.is_of(question("old", 1)));
  EXPECT_FALSE(promise.hear(question("old", 1), view));
  EXPECT_TRUE(promise.is_of(question("young", 2)));
  // It has no outbox any more.
  EXPECT_TRUE(promise.hear(question("young", 0, "t2"), view));
  EXPECT_TRUE(promise.hear(question("old", 1), view));
  view["old"].born = "o2";
  promise.see(view);
  EXPECT_TRUE(promise.is_free());
}

}  // namespace
}  // namespace vigil::fleet::testing
