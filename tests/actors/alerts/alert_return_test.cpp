// What a process finds that had the camera before: what it left, what others went on from meanwhile, and
// books that come late.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/actors/alerts/handover_world.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AlertReturn : public AlertHandover {
 protected:
  /// It has the camera, and an episode.
  void one_begins() {
    start(one_);
    settle(one_);
    begin(one_, 7);
  }
  /// In its outbox, and committed nowhere: no gateway serves from now on.
  void one_keeps_an_update() {
    one_.publisher.holds_back = true;
    show(one_, 7, 6, 0.9F);
  }
};

TEST_F(AlertReturn, WhatAProcessLeftIsToldByTheNextOneThoughTheCameraIsElsewhere) {
  one_begins();
  // No gateway serves: it is in the outbox, and the process is killed.
  one_keeps_an_update();
  one_.publisher.holds_back = false;
  start(one_);
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"", 0}, Claim{"gate", 7}));
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  // The next owner goes on with its episode.
  start(two_);
  show(two_, 8, 8, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4);
}

TEST_F(AlertReturn, ACameraThatIsHereAgainGoesOnWithWhatTheProcessBeforeLeft) {
  one_begins();
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  one_keeps_an_update();
  one_.publisher.holds_back = false;
  start(one_);
  settle(one_);
  // By the plan it never was elsewhere: the fence is the same.
  show(one_, 7, 8, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 7})) << "its episode is to go on";
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("episode"), episode);
}

TEST_F(AlertReturn, AfterADoubtfulAppendWhatIsLostIsCountedOnce) {
  one_begins();
  one_.publisher.refuses = true;
  one_.outbox->fails_afterwards = true;
  show(one_, 7, 6, 0.9F);
  one_.outbox->fails_afterwards = false;
  one_.desk->lost("gate", 7);
  clock_.advance(1s);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "1");
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
}

TEST_F(AlertReturn, TheNextTenureOfTheSameProcessGoesOnWithWhatItHas) {
  one_begins();
  // In the outbox, and not committed; then the fence grows.
  one_keeps_an_update();
  show(one_, 8, 8, 0.9F);
  EXPECT_THAT(one_.publisher.messages, SizeIs(1));
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"gate", 8}));
  // Its events were under way, and have come meanwhile or not.
  SeriesBooks books = gateways_.claim("gate", 8, "one");
  EXPECT_EQ(books.previous, 7U);
  one_.desk->take_over(books);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(dropped(), "");
}

TEST_F(AlertReturn, WhereSomebodyElseWasBetweenItsOwnIsForgotten) {
  one_begins();
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  // One that is not committed, and one that could not be written.
  one_keeps_an_update();
  one_.outbox->fails = true;
  show(one_, 7, 8, 0.9F);
  one_.outbox->fails = false;
  one_.publisher.messages.clear();
  start(two_);
  show(two_, 8, 10, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  // Back again, without a word of the loss.
  show(one_, 9, 12, 0.9F);
  clock_.advance(1s);
  one_.desk->tick();
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("episode"), episode);
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4) << "as the other left it";
  EXPECT_EQ(dropped(), "2");
}

TEST_F(AlertReturn, AnEpisodeThatTheOtherEndedIsOver) {
  one_begins();
  start(two_);
  for (const int end : {6, 8, 10}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over"));
  show(one_, 9, 12, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), SizeIs(2)) << "one window confirms nothing";
  show(one_, 9, 14, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over", "new 0"));
}

TEST_F(AlertReturn, ARestartedProcessGoesOnWithItsOwn) {
  one_begins();
  one_keeps_an_update();
  // Written, and committed nowhere. Killed.
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  start(one_);
  EXPECT_THAT(one_.publisher.messages, IsEmpty()) << "it is not known yet what it is worth";
  one_.desk->status(owned(8), CameraState::connecting, "");
  const auto claims = one_.desk->take_claims();
  EXPECT_THAT(claims, ElementsAre(Claim{"", 0}, Claim{"gate", 8})) << "there is something to tell";
  one_.desk->take_over(gateways_.claim("gate", 8, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  show(one_, 8, 8, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2")) << "the episode as well";
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 4);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  one_.desk->take_over(gateways_.claim("", 200, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online", "offline", "online"))
      << "what it could not say before";
}

TEST_F(AlertReturn, ARestartedProcessForgetsWhatOthersWentOnFrom) {
  one_begins();
  show(one_, 7, 6, 0.9F);
  one_.publisher.messages.clear();
  start(two_);
  for (const int end : {8, 10, 12}) show(two_, 8, end, 0.1F);
  settle(two_);
  start(one_);
  one_.publisher.messages.clear();
  show(one_, 9, 14, 0.9F);
  show(one_, 9, 16, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 over", "new 0"));
}

TEST_F(AlertReturn, WhatNobodyAsksForGoesAtLastAndHoldsUpNobody) {
  one_begins();
  one_keeps_an_update();
  start(one_);
  // The camera is another node's now, and nobody answers for it.
  for (const Claim& claim : one_.desk->take_claims())
    if (claim.camera.empty()) one_.desk->take_over(gateways_.claim("", ++revision_, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online", "offline", "online"));
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  clock_.advance(25h);
  one_.desk->tick();
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  EXPECT_EQ(dropped(), "1");
  const AlertDesk::GivenUp lost = one_.desk->take_given_up();
  EXPECT_EQ(lost.events, 1U);
  EXPECT_THAT(lost.cameras, ElementsAre("gate"));
}

TEST_F(AlertReturn, WhatIsNoAnswerToAClaimIsIgnored) {
  start(one_);
  begin(one_, 7);
  start(two_);
  show(two_, 8, 6, 0.9F);
  SeriesBooks right = gateways_.claim("gate", 8, "two");
  SeriesBooks other = right;
  other.camera = "yard";
  SeriesBooks older = right;
  older.fence = 6;
  SeriesBooks newer = right;
  newer.fence = 9;
  for (const SeriesBooks& books : {other, older, newer}) two_.desk->take_over(books);
  EXPECT_THAT(two_.publisher.messages, IsEmpty());
  SeriesBooks twice = right;
  twice.last.clear();
  two_.desk->take_over(right);
  two_.desk->take_over(twice);
  two_.desk->take_over(older);
  show(two_, 8, 8, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
}

TEST_F(AlertReturn, BooksThatComeWhileTheOutboxFailsCountWhenItWorks) {
  one_begins();
  start(two_);
  settle(two_);
  show(two_, 8, 6, 0.9F);
  two_.outbox->fails = true;
  settle(two_);
  EXPECT_TRUE(two_.desk->takes_over());
  EXPECT_THAT(two_.desk->failure(), HasSubstr("broken"));
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  // It kept it, and could not say so.
  two_.outbox->fails = false;
  two_.outbox->fails_afterwards = true;
  clock_.advance(1s);
  two_.desk->tick();
  EXPECT_TRUE(two_.desk->takes_over());
  two_.outbox->fails_afterwards = false;
  clock_.advance(1s);
  two_.desk->tick();
  EXPECT_FALSE(two_.desk->takes_over());
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
}

TEST_F(AlertReturn, BooksThatComeInDoubtFindWhatTheAppendHasKept) {
  one_begins();
  one_.outbox->fails_afterwards = true;
  show(one_, 7, 6, 0.9F);
  one_.outbox->fails_afterwards = false;
  show(one_, 8, 8, 0.9F);
  settle(one_);
  clock_.advance(1s);
  one_.desk->tick();
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1", "update 2"));
}

TEST_F(AlertReturn, AnotherOutboxIsClaimedForAnew) {
  one_begins();
  const auto other = make_memory_outbox();
  one_.outbox->replace(*other);
  show(one_, 7, 6, 0.9F);
  EXPECT_EQ(other->last_position(), 0U) << "its numbers begin anew";
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"", 101}, Claim{"gate", 7}));
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_THAT(other->notes(), ::testing::Contains(::testing::Key(HasSubstr("episode/"))));
}

TEST_F(AlertReturn, WhatWaitsForBooksIsBounded) {
  start(one_, false, 3);
  for (int i = 1; i <= 5; ++i) show(one_, 7, 2 * i, 0.9F);
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(2)) << "the oldest are lost, and nobody waits for them";
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_messages_dropped_total{reason=\"backlog_full\",socket=\"outbox\"} 2\n"));
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("confirmations"), 3);
}

TEST_F(AlertReturn, AWindowThatWaitedTooLongIsNotExplained) {
  gate_->rules[0].explain = true;
  start(one_);
  const auto explainable = [&](double end) {
    auto window = std::make_shared<WindowAnswers>(*window_of(owned(7), end, {0.9F}));
    window->id = stream::WindowId{"gate", 1, static_cast<std::uint64_t>(end)};
    return window;
  };
  one_.desk->observe(explainable(2));
  one_.desk->observe(explainable(4));
  clock_.advance(kExplanationPatience);
  one_.desk->observe(explainable(6));
  settle(one_);
  const auto requests = one_.desk->take_requests();
  ASSERT_THAT(requests, SizeIs(1)) << "its device keeps the last one alone";
  EXPECT_EQ(requests[0].explain.window.number, 6U);
}

TEST_F(AlertReturn, WithoutClaimsNothingOfItCounts) {
  one_.desk.emplace(AlertDesk::Options{.model = {"m"}, .run = 1}, *one_.outbox, one_.publisher, metrics_,
                    clock_);
  for (const int end : {2, 4}) show(one_, 7, end, 0.9F);
  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  one_.desk->lost("gate", 7);
  one_.desk->removed("gate");
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty());
  EXPECT_FALSE(one_.desk->takes_over());
  one_.desk->end("gate");
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
}

TEST_F(AlertReturn, WhoNeverWasAnybodyLosesNothing) {
  Node refused{"refused"};
  start(refused);
  refused.desk->finish();
  EXPECT_EQ(refused.desk->lost().events, 0U) << "nobody had heard of it";
  EXPECT_EQ(refused.desk->lost().reason, "");
}

}  // namespace
}  // namespace vigil::actors
