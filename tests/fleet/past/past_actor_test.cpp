// Nodes whose caches are a test's, a gateway, and a registry in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fleet/past/past_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastOutcome;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing::PastActorTest;
using ::testing::SizeIs;

TEST_F(PastActorTest, AQuestionIsPutToAllWhoRemember) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true, /*has_disk=*/false);
  Node& gateway = node("gw", false);
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
  ask(gateway, question());
  ASSERT_THAT(one.cache.questions, SizeIs(1));
  ASSERT_THAT(two.cache.questions, SizeIs(1));
  EXPECT_EQ(std::get<actors::PastQuestion>(two.cache.questions[0]->what).question, "Is a car there?");
  EXPECT_EQ(two.cache.questions[0]->deadline, clock_.now() + 60s);
  say(one, 0.2);
  EXPECT_THAT(replies_, IsEmpty());
  say(two, 0.9);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].ticket, 1U);
  EXPECT_EQ(json::parse(replies_[0].text).at("answer"), "gpu-2");
}

TEST_F(PastActorTest, ANodeThatRemembersAsksItselfToo) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  ask(one, question());
  ASSERT_THAT(one.cache.questions, SizeIs(1));
  say(one, 0.2);
  say(two, 0.1);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("answer"), "gpu-1");
}

TEST_F(PastActorTest, WhoIsGoneIsNamed) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  // While it is asked.
  ask(gateway, question());
  end(two);
  say(one, 0.2);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(json::parse(replies_[0].text).at("silent"), ElementsAre("gpu-2"));
  // And before that.
  ask(gateway, question(), 2);
  say(one, 0.2);
  ASSERT_THAT(replies_, SizeIs(2));
  EXPECT_THAT(json::parse(replies_[1].text).at("silent"), ElementsAre("gpu-2"));
}

TEST_F(PastActorTest, WhatNobodyWaitsForIsForgottenEverywhere) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  ask(gateway, question());
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::forget_atom_v, std::uint64_t{1});
  settle();
  EXPECT_THAT(one.cache.forgotten, ElementsAre(one.cache.questions[0]->ticket));
  // A gateway that is gone waits for nothing, either.
  ask(gateway, question(), 2);
  end(gateway);
  EXPECT_THAT(one.cache.forgotten, SizeIs(2));
}

TEST_F(PastActorTest, AnErasureIsAnsweredWhenAllHaveDoneIt) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  ask(gateway, erasure());
  ASSERT_THAT(one.cache.erasures, SizeIs(1));
  ASSERT_THAT(two.cache.erasures, SizeIs(1));
  const auto& what = std::get<actors::PastErasure>(one.cache.erasures[0]->what);
  EXPECT_EQ(what.camera, (actors::PastCamera{"gate", "acme"}));
  EXPECT_EQ(what.wall, (history::WallRange{0, 10}));
  EXPECT_TRUE(one.cache.erasures[0]->rights.erase);
  pass(250ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::answer) << replies_[0].text;
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 10);
  EXPECT_THAT(keys(), SizeIs(5)) << "others may come back who have not heard of it";
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2")) << "what is over is removed";
  EXPECT_THAT(one.cache.erasures, SizeIs(1)) << "once";
}

TEST_F(PastActorTest, ANodeThatWasAwayDoesItBeforeItAnswers) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  end(two);
  ask(gateway, erasure());
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(one.cache.erasures, SizeIs(1));
  pass(59s + 750ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::unavailable);
  EXPECT_THAT(replies_[0].text, HasSubstr("not done yet by gpu-2"));
  // It stays ordered, whoever asked.
  EXPECT_THAT(keys(), SizeIs(4));
  for (const Node* each : {&one, &gateway}) EXPECT_EQ(each->waiting(), "1");

  two.cache.erasures.clear();
  start(two, true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  ask(gateway, question(), 2);
  EXPECT_THAT(two.cache.questions, SizeIs(1));
  for (const Node* each : {&one, &two, &gateway}) EXPECT_EQ(each->waiting(), "0") << "what is done stays";
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
}

TEST_F(PastActorTest, WhatTheDiskDoesNotDoIsTriedAgain) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  one.cache.fails = true;
  ask(gateway, erasure());
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(log_.str(),
              HasSubstr("error past: an erasure is not done yet, and tried again: the disk is full"));
  one.cache.fails = false;
  pass(6s);
  EXPECT_THAT(one.cache.erasures, SizeIs(2));
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::answer);
}

TEST_F(PastActorTest, WhatIsOnADiskThatANodeDoesNotUseAnyMoreIsWaitedFor) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  end(one);
  start(one, true, /*has_disk=*/false);
  ask(gateway, erasure());
  EXPECT_THAT(one.cache.erasures, SizeIs(1)) << "what is in its memory goes";
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(log_.str(), HasSubstr("it has no memory.dir now"));
  pass(60s);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(replies_[0].text, HasSubstr("not done yet by gpu-1"));
}

TEST_F(PastActorTest, WhoDoesNotKnowTheCameraHasNothingToErase) {
  node("gpu-1", true);
  Node& two = node("gpu-2", true);
  two.cache.knows = false;
  Node& gateway = node("gw", false);
  ask(gateway, erasure());
  pass(250ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 5);
}

TEST_F(PastActorTest, AnErasureOfAGatewayThatEndsIsDoneAllTheSame) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  end(two);
  ask(gateway, erasure());
  end(gateway);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].text, "this node ends");
  Node& other = node("gw-2", false);
  start(two, true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
  EXPECT_THAT(one.cache.erasures, SizeIs(1));
  static_cast<void>(other);
}

TEST_F(PastActorTest, WhatARegistryHoldsThatIsNoneIsToldOnce) {
  store_->commit({{}, {cluster::RegistryPut{"/vigil/city/past/erasures/odd", "none", 0}}});
  Node& one = node("gpu-1", true);
  store_->commit({{}, {cluster::RegistryPut{"/vigil/city/past/nodes/x", R"({"disk": false})", 0}}});
  settle();
  const std::string log = log_.str();
  const std::string line = "error past: the registry's key /vigil/city/past/erasures/odd: is no JSON object";
  EXPECT_THAT(log, HasSubstr(line));
  EXPECT_EQ(log.find(line), log.rfind(line));
  EXPECT_THAT(one.cache.erasures, IsEmpty());
}

TEST_F(PastActorTest, WhoIsForgottenByTheRegistrySaysAgainThatHeRemembers) {
  node("gpu-1", true);
  store_->commit({{}, {cluster::RegistryDelete{"/vigil/city/past/nodes/gpu-1"}}});
  settle();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1"));
}

TEST_F(PastActorTest, WhoJoinsWhileItIsErasedDoesItToo) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  one.cache.fails = true;
  ask(gateway, erasure());
  Node& two = node("gpu-2", true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  one.cache.fails = false;
  pass(6s);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 10);
}

TEST_F(PastActorTest, AnAskerThatGoesWhileItIsFoundOutWhoAnswersAsksNobody) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  auto request = std::make_shared<actors::PastRequest>();
  request->ticket = 1;
  request->what = question();
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::PastRequestPtr(std::move(request)));
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::forget_atom_v, std::uint64_t{1});
  settle();
  EXPECT_THAT(one.cache.questions, IsEmpty());
}

TEST_F(PastActorTest, ACacheThatEndsIsSilent) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  ask(gateway, question());
  caf::anon_send(one.cached, actors::stop_atom_v);
  settle();
  say(two, 0.1);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(json::parse(replies_[0].text).at("silent"), ElementsAre("gpu-1"));
  EXPECT_THAT(log_.str(), HasSubstr("the cache has ended"));
}

}  // namespace
}  // namespace vigil::fleet
