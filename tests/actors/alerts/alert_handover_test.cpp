// Desks of several nodes that have a camera one after the other.
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

TEST_F(AlertHandover, NothingIsToldBeforeTheBooksAreThere) {
  start(one_);
  one_.desk->status(owned(7), CameraState::connecting, "");
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"", 0})) << "a camera that connects claims nothing";
  one_.desk->status(owned(7), CameraState::up, "");
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty()) << "nor does one that may go on as it was";
  show(one_, 7, 2, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 7}));
  show(one_, 7, 4, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty()) << "once";
  EXPECT_THAT(one_.desk->take_observed(), IsEmpty()) << "windows wait";
  EXPECT_THAT(one_.publisher.messages, IsEmpty());
  EXPECT_EQ(one_.disk->last_position(), 0U);

  one_.desk->take_over(gateways_.claim("gate", 7, "one"));
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(2));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0"));
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up"));
  EXPECT_THAT(gateways_.told("process/"), IsEmpty()) << "that is another series";
  one_.desk->take_over(gateways_.claim("", 101, "one"));
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("process/one/"), ElementsAre("online"));
  show(one_, 7, 6, 0.9F);
  gateways_.commit(one_.publisher);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1")) << "at once from then on";
}

TEST_F(AlertHandover, AnEpisodeGoesOnWithTheNextOwner) {
  gate_->rules[0].topics = {"night"};
  gate_->rules[0].cooldown = 1min;
  start(one_);
  begin(one_, 7);
  const std::string episode = gateways_.last(kAlert).at("data").at("episode");
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0")) << "it is not over";

  start(two_);
  show(two_, 8, 30, 0.95F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0")) << "within the cooldown of what the other told";
  show(two_, 8, 66, 0.6F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1"));
  EXPECT_THAT(gateways_.told("topic/night/"), ElementsAre("new 0", "update 1"));
  json data = gateways_.last(kAlert).at("data");
  EXPECT_EQ(data.at("episode"), episode);
  EXPECT_EQ(data.at("confirmations"), 4) << "of both";
  EXPECT_NEAR(data.at("score").get<double>(), 0.95, 1e-6);
  for (const int end : {68, 70, 72}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1", "end 2 over"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
  show(two_, 8, 200, 0.9F);
  show(two_, 8, 202, 0.9F);
  settle(two_);
  EXPECT_NE(gateways_.last(kAlert).at("data").at("episode"), episode);
  EXPECT_THAT(two_.disk->notes(), ::testing::Contains(::testing::Pair("tenure/gate", "8")));
}

TEST_F(AlertHandover, AnEpisodeOfARuleThatIsAnotherNowEnds) {
  config::RuleSettings dog = gate_->rules[0];
  dog.name = "dog";
  gate_->rules.push_back(dog);
  start(one_);
  begin(one_, 7);
  one_.desk->end("gate");
  gate_->rules[0].threshold = 0.4;
  gate_->rules.pop_back();
  start(two_);
  // No window of the new owner has to come for it.
  two_.desk->status(owned(8), CameraState::down, "no route");
  settle(two_);
  EXPECT_THAT(gateways_.told("alert/north/gate/dog/"), ElementsAre("new 0", "end 1 rule_changed"));
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 rule_changed"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
  begin(two_, 8, 10);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 rule_changed", "new 0"));
}

TEST_F(AlertHandover, AResumedEpisodeEndsWithoutAWindowToo) {
  start(one_);
  begin(one_, 7);
  start(two_);
  two_.desk->status(owned(8), CameraState::down, "no route");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0")) << "resumed";
  two_.desk->removed("gate");
  EXPECT_THAT(two_.publisher.messages, IsEmpty());
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("end_time"), 1785578404.0) << "when it was seen last";
}

TEST_F(AlertHandover, OnlyACameraThatIsRemovedEndsItsEpisodes) {
  start(one_);
  begin(one_, 7);
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  // The configuration came later than the plan.
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
  one_.desk->removed("gate");
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), SizeIs(2)) << "once";
}

TEST_F(AlertHandover, ARemovedCameraIsDownForWhoeverWatchesItsState) {
  start(one_);
  one_.desk->status(owned(7), CameraState::up, "");
  one_.desk->end("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), IsEmpty()) << "it may go on elsewhere";
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("up", "down"));
  start(two_);
  two_.desk->status(owned(8), CameraState::up, "");
  two_.desk->status(owned(8), CameraState::down, "no route");
  two_.desk->removed("gate");
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("up", "down", "up", "down")) << "and not twice";
}

TEST_F(AlertHandover, ARemovedCameraEndsWhatItsFormerOwnerHadBegun) {
  start(one_);
  begin(one_, 7);
  start(two_);
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->removed("gate");
  two_.desk->end("gate");
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "end 1 camera_ended"));
}

TEST_F(AlertHandover, WhatTheFormerOwnerHasOnItsWayIsToldBeforeTheNextOneClaims) {
  start(one_);
  begin(one_, 7);
  start(two_);
  settle(two_);
  two_.desk->status(owned(8), CameraState::connecting, "");
  clock_.advance(1min);
  two_.desk->tick();
  two_.desk->status(owned(8), CameraState::up, "");
  clock_.advance(1999ms);
  two_.desk->tick();
  settle(two_);
  show(one_, 7, 6, 0.9F);
  settle(one_);
  EXPECT_THAT(gateways_.told("alert/"), ElementsAre("new 0", "update 1"));
  EXPECT_EQ(gateways_.fences.at("gate"), 7U);
  // Of a camera that has no windows, where it is shall be told too.
  clock_.advance(1ms);
  two_.desk->tick();
  EXPECT_THAT(two_.desk->take_claims(), ElementsAre(Claim{"gate", 8}));
  two_.desk->tick();
  EXPECT_THAT(two_.desk->take_claims(), IsEmpty()) << "once";
}

TEST_F(AlertHandover, WhoEndsWaitsForNobody) {
  start(one_);
  settle(one_);
  one_.desk->status(owned(7), CameraState::connecting, "");
  one_.desk->claim_held();
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty()) << "somebody else may have it still";
  one_.desk->status(owned(7), CameraState::up, "");
  one_.desk->claim_held();
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up"));
  EXPECT_FALSE(one_.desk->waits_for_books());
}

// A window waits for a claim that its camera's next tenure has undone.
TEST_F(AlertHandover, WindowsOfATenureBeforeAreClaimedForToo) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.desk->lost("gate", 7);
  show(one_, 8, 6, 0.9F);
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 8}));
  one_.desk->status(owned(9), CameraState::connecting, "");
  EXPECT_THAT(one_.desk->take_claims(), IsEmpty());
  be_patient(one_);
  EXPECT_THAT(one_.desk->take_claims(), ElementsAre(Claim{"gate", 9}));
}

TEST_F(AlertHandover, AHandoverSaysNothingOfStates) {
  start(one_);
  one_.desk->status(owned(7), CameraState::connecting, "");
  one_.desk->status(owned(7), CameraState::up, "");
  be_patient(one_);
  settle(one_);
  start(two_);
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->status(owned(8), CameraState::up, "");
  be_patient(two_);
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up"));
  two_.desk->status(owned(8), CameraState::down, "no route");
  two_.desk->status(owned(8), CameraState::connecting, "");
  two_.desk->status(owned(8), CameraState::up, "");
  settle(two_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up", "down", "connecting", "up"))
      << "and from then on all";
  start(one_);
  one_.desk->status(owned(9), CameraState::connecting, "");
  one_.desk->status(owned(9), CameraState::down, "no route");
  settle(one_);
  EXPECT_THAT(gateways_.told("status/"), ElementsAre("connecting", "up", "down", "connecting", "up", "down"));
}

TEST_F(AlertHandover, EvidenceOfTheFormerOwnerHasFailed) {
  gate_->rules[0].cooldown = 1h;
  start(one_, true);
  begin(one_, 7);
  EXPECT_THAT(one_.desk->take_evidence_requests(), SizeIs(1));
  start(two_, true);
  show(two_, 8, 6, 0.9F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1*"));
  json evidence = gateways_.last(kAlert).at("data").at("evidence");
  EXPECT_EQ(evidence.at("clip_state"), "failed");
  EXPECT_EQ(evidence.at("reason"), "its camera moved to another node before it was made");
  for (const int end : {8, 10, 12}) show(two_, 8, end, 0.1F);
  settle(two_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0", "update 1*", "end 2 over"));
  EXPECT_EQ(gateways_.last(kAlert).at("data").at("evidence").at("clip_state"), "failed");
  EXPECT_THAT(two_.desk->take_evidence_requests(), IsEmpty());

  // One that is over, and waits for its clip only.
  begin(two_, 8, 4000);
  for (const int end : {4006, 4008, 4010}) show(two_, 8, end, 0.1F);
  settle(two_);
  start(one_, true);
  show(one_, 9, 4012, 0.1F);
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert),
              ElementsAre("new 0", "update 1*", "end 2 over", "new 0", "end 1 over", "end 2 over*"));
  EXPECT_THAT(gateways_.notes, IsEmpty());
}

TEST_F(AlertHandover, WhatTheFormerOwnerStillHearsItTellsNoMore) {
  start(one_, true);
  begin(one_, 7);
  const auto requests = one_.desk->take_evidence_requests();
  ASSERT_THAT(requests, SizeIs(1));
  one_.desk->lost("gate", 7);
  EXPECT_FALSE(one_.desk->awaits_evidence("gate")) << "its end waits for nothing";
  Evidence ready;
  ready.state = EvidenceState::ready;
  one_.desk->evidence({requests[0].episode, ready});
  show(one_, 7, 6, 0.9F);
  one_.desk->status(owned(7), CameraState::down, "");
  one_.desk->end("gate");
  one_.desk->removed("gate");
  settle(one_);
  EXPECT_THAT(gateways_.told(kAlert), ElementsAre("new 0"));
  EXPECT_THAT(gateways_.told("status/"), IsEmpty());
  EXPECT_EQ(one_.desk->backlog(), 0U);
  EXPECT_THAT(one_.desk->take_observed(), SizeIs(3)) << "nobody waits for them";
}

TEST_F(AlertHandover, WhatIsLostIsCountedAndHoldsUpNobody) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  one_.publisher.holds_back = true;
  show(one_, 7, 6, 0.9F);
  one_.publisher.refuses = true;
  show(one_, 7, 8, 0.9F);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 2U);
  one_.outbox->fails = true;
  show(one_, 7, 10, 0.9F);
  one_.outbox->fails = false;
  EXPECT_EQ(one_.desk->backlog(), 1U);
  one_.desk->lost("gate", 7);
  clock_.advance(1s);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "2")
      << "what waited, and what the publisher has not taken: the rest is its own to count";
  EXPECT_EQ(one_.desk->backlog(), 0U);
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 1U);
  one_.publisher.refuses = false;
  one_.publisher.handed_over = 100;
  one_.desk->tick();
  EXPECT_EQ(one_.disk->unacknowledged(9).size(), 0U);
  one_.desk->lost("gate", 6);
  one_.desk->lost("nobody", 6);
  one_.desk->tick();
  EXPECT_EQ(dropped(), "2");
}

TEST_F(AlertHandover, WhatIsGivenUpIsToldOnceWithItsCameras) {
  start(one_);
  settle(one_);
  begin(one_, 7);
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  one_.publisher.refuses = true;
  show(one_, 7, 6, 0.9F);
  one_.desk->lost("gate", 7);
  one_.desk->tick();
  const AlertDesk::GivenUp lost = one_.desk->take_given_up();
  EXPECT_EQ(lost.events, 1U);
  EXPECT_THAT(lost.cameras, ElementsAre("gate"));
  EXPECT_EQ(one_.desk->take_given_up().events, 0U);
  // What has no number yet is counted, too.
  start(two_);
  two_.desk->status(owned(8), CameraState::up, "");
  for (const int end : {2, 4}) show(two_, 8, end, 0.9F);
  two_.desk->lost("gate", 8);
  EXPECT_EQ(two_.desk->take_given_up().events, 3U);
}

TEST_F(AlertHandover, OfWhatIsGivenUpThreeCamerasAreNamed) {
  EXPECT_EQ((AlertDesk::GivenUp{1, {}}.who()), "this node itself");
  EXPECT_EQ((AlertDesk::GivenUp{1, {"a"}}.who()), "a");
  EXPECT_EQ((AlertDesk::GivenUp{3, {"c", "a", "b"}}.who()), "a, b, c");
  EXPECT_EQ((AlertDesk::GivenUp{5, {"e", "c", "a", "b", "d"}}.who()), "a, b, c and 2 more");
}

TEST_F(AlertHandover, WhatIsHeldAtTheEndIsToldToBeLost) {
  start(one_);
  settle(one_);
  for (const int end : {2, 4}) show(one_, 7, end, 0.9F);
  one_.desk->finish();
  EXPECT_EQ(one_.desk->lost().events, 2U);
  EXPECT_THAT(one_.desk->lost().reason, HasSubstr("nobody said where their series go on"));
}

}  // namespace
}  // namespace vigil::actors
