// A node of a fleet, and what it knows of the others.
#include "tests/cluster/membership/member_world.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FleetMemberTest;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(FleetMemberTest, SeesThoseThatCome) {
  Node& a = start("a");
  EXPECT_EQ(a.member->state(), Membership::joining);
  run(200ms);
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_THAT(a.sees(), ElementsAre("a"));
  Node& b = start("b");
  run(200ms);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  EXPECT_THAT(b.sees(), ElementsAre("a", "b"));
  EXPECT_EQ(b.member->nodes().at("a").control, (PeerAddress{"a", 7400}));
}

TEST_F(FleetMemberTest, TellsOthersWhatItAlters) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  const int before = b.changes;
  a.member->alter([](NodeRecord& record) { record.state = NodeState::draining; });
  run(200ms);
  EXPECT_EQ(b.member->nodes().at("a").state, NodeState::draining);
  EXPECT_GT(b.changes, before);
}

TEST_F(FleetMemberTest, TellsFencesWithWhatIsToldNext) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  a.member->saw(17);
  a.member->saw(16);
  run(5s);
  EXPECT_EQ(a.member->record().highest_fence, 17U);
  EXPECT_EQ(b.member->nodes().at("a").highest_fence, 0U);
  a.member->alter([](NodeRecord& record) { record.version = "cellar"; });
  run(200ms);
  EXPECT_EQ(b.member->nodes().at("a").highest_fence, 17U);
  a.member->saw(18);
  a.member->contradict();
  run(200ms);
  EXPECT_EQ(b.member->nodes().at("a").highest_fence, 18U);
}

TEST_F(FleetMemberTest, AlterationsThatCanWaitAreSpreadOverTime) {
  for (int i = 0; i < 100; ++i) start("n" + std::to_string(i));
  run(1s);
  const Revision before = store_->header().revision;
  for (Node& node : nodes_) node.member->alter([](NodeRecord& record) { record.config_seen = "new"; });
  run(200ms);
  const Revision soon = store_->header().revision - before;
  EXPECT_GT(soon, 5);
  EXPECT_LT(soon, 40) << "of a hundred nodes, so many within 200 ms of a second";
  run(1s);
  EXPECT_EQ(store_->header().revision - before, 100) << "each once";
  for (const auto& [name, record] : nodes_.front().member->nodes()) EXPECT_EQ(record.config_seen, "new");
  // What cannot wait takes along what can.
  nodes_.back().member->alter([](NodeRecord& record) { record.config = "new"; });
  nodes_.back().member->alter([](NodeRecord& record) { record.state = NodeState::draining; });
  run(50ms);
  EXPECT_EQ(nodes_.front().member->nodes().at("n99").config, "new");
}

TEST_F(FleetMemberTest, AlterationsWhileOneIsUnderWayAreToldAsWell) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  a.member->alter([](NodeRecord& record) { record.version = "one"; });
  a.member->alter([](NodeRecord& record) { record.version = "two"; });
  run(200ms);
  EXPECT_EQ(b.member->nodes().at("a").version, "two");
}

TEST_F(FleetMemberTest, AlterationsBeforeTheLastOneWasSeenWaitForThat) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  a.ears.is_late = true;
  a.ears.commits = 0;
  a.member->alter([](NodeRecord& record) { record.version = "one"; });
  run(100ms);
  a.member->alter([](NodeRecord& record) { record.version = "two"; });
  run(100ms);
  EXPECT_EQ(a.ears.commits, 1) << "the next one would be refused";
  EXPECT_EQ(b.member->nodes().at("a").version, "one");
  a.ears.is_late = false;
  for (const auto& hear : a.ears.late) hear();
  run(100ms);
  EXPECT_EQ(a.ears.commits, 2);
  EXPECT_EQ(b.member->nodes().at("a").version, "two") << "at once, and not after a pause";
}

TEST_F(FleetMemberTest, TellsManyChangesOfOthersTogether) {
  Node& a = start("a");
  run(1s);
  const int before = a.changes;
  for (int i = 0; i < 100; ++i) {
    start("n" + std::to_string(i));
    run(50ms);
  }
  run(200ms);
  EXPECT_THAT(a.sees(), ::testing::SizeIs(101));
  EXPECT_LE(a.changes - before, 52) << "every 100 ms";
  EXPECT_GE(a.changes - before, 20);
}

TEST_F(FleetMemberTest, WhatIsSettledIsPutOnceASecondApartFromTheRecord) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  const int before = b.changes;
  const Revision revision = store_->header().revision;
  for (Fence fence = 1; fence <= 30; ++fence) {
    a.member->settle(fence);
    run(100ms);
  }
  run(1s);
  EXPECT_EQ(store_->range("/vigil/city/settled/").entries.at(0).value, "1 30");
  EXPECT_LE(store_->header().revision - revision, 5);
  EXPECT_EQ(b.changes, before) << "only whoever plans has to know";
  // It goes with the node.
  kill(a);
  run(5s);
  EXPECT_THAT(store_->range("/vigil/city/settled/").entries, IsEmpty());
}

TEST_F(FleetMemberTest, WhichStreamsAreFullIsToldBesideWhatIsSettled) {
  Node& a = start("a");
  run(200ms);
  const auto told = [&] {
    const auto entries = store_->range("/vigil/city/filled/").entries;
    return entries.empty() ? "nothing" : entries.at(0).value;
  };
  EXPECT_EQ(told(), "nothing") << "as builds that do not know of it";
  a.member->settle(5);
  a.member->fill({});
  run(200ms);
  EXPECT_EQ(told(), "1") << "none is news, too";
  const Revision revision = store_->header().revision;
  for (Fence fence = 10; fence < 30; ++fence) {
    a.member->fill({7, fence});
    run(100ms);
  }
  run(1s);
  EXPECT_EQ(told(), "1 7 29");
  EXPECT_LE(store_->header().revision - revision, 4);
  a.member->fill({7, 29});
  run(2s);
  EXPECT_LE(store_->header().revision - revision, 4) << "no news";
  EXPECT_EQ(store_->range("/vigil/city/settled/").entries.at(0).value, "1 5");
  kill(a);
  run(5s);
  EXPECT_EQ(told(), "nothing");
}

TEST_F(FleetMemberTest, NotAllOfferThemselvesAtOnce) {
  for (int i = 0; i < 200; ++i) start("n" + std::to_string(i));
  run(1s);
  const auto asked = std::make_shared<int>(0);
  store_->listen([asked](MemoryStore::Notice) { ++*asked; });
  for (Node& node : nodes_) node.member->stand_for_planner(true);
  run(1s);
  EXPECT_NE(nodes_.front().member->planner(), "");
  EXPECT_LE(*asked, 20) << "of 200 that would";
}

TEST_F(FleetMemberTest, LosesThoseThatFallSilentWithinTheirTime) {
  Node& a = start("a");
  Node& b = start("b");
  run(10s);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  kill(b);
  run(1900ms);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  run(1200ms);
  EXPECT_THAT(a.sees(), ElementsAre("a"));
}

TEST_F(FleetMemberTest, LosesAtOnceThoseThatLeave) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  bool done = false;
  b.member->leave([&] { done = true; });
  run(100ms);
  EXPECT_TRUE(done);
  EXPECT_THAT(a.sees(), ElementsAre("a"));
  // And it does not come back by itself.
  run(10s);
  EXPECT_THAT(a.sees(), ElementsAre("a"));
}

TEST_F(FleetMemberTest, GoesOnWithWhatItKnewWhenTheRegistryIsGone) {
  Node& a = start("a");
  start("b");
  run(200ms);
  for (Node& node : nodes_) node.cut = true;
  run(10s);
  EXPECT_EQ(a.member->state(), Membership::cut_off);
  EXPECT_FALSE(a.member->registry_answers());
  EXPECT_THAT(a.log, HasSubstr("registry: does not answer: nothing moves until it does"));
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  const std::string log = a.log;
  run(60s);
  EXPECT_EQ(a.log, log) << "it says so once";

  for (Node& node : nodes_) node.cut = false;
  run(3s);
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_TRUE(a.member->registry_answers());
  EXPECT_THAT(a.log, HasSubstr("registry: answers again"));
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
}

TEST_F(FleetMemberTest, ALeaseThatTheRegistryHasKeptIsGoneOnWith) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  const RegistryEntry before = store_->range("/vigil/city/nodes/a").entries.at(0);
  // No leader: nothing is answered, and no lease ends.
  for (Node& node : nodes_) node.cut = true;
  for (int i = 0; i < 100; ++i) {
    time_.advance(100ms);
    for (Node& node : nodes_) node.registry.expire();
    store_->keep_alive(before.lease);
    store_->keep_alive(store_->range("/vigil/city/nodes/b").entries.at(0).lease);
  }
  EXPECT_EQ(a.member->state(), Membership::cut_off);
  for (Node& node : nodes_) node.cut = false;
  run(3s);
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_EQ(b.member->state(), Membership::member);
  EXPECT_EQ(store_->range("/vigil/city/nodes/a").entries.at(0), before) << "nobody had to be told anything";
}

TEST_F(FleetMemberTest, CutOffAloneIsGoneForTheOthersAndComesBack) {
  Node& a = start("a");
  Node& b = start("b");
  run(200ms);
  const Revision made = a.member->created("b");
  const Revision joined = b.member->joined();
  EXPECT_EQ(made, joined);
  b.member->alter([](NodeRecord& record) { record.serves = true; });
  run(200ms);
  EXPECT_EQ(a.member->created("b"), made);
  b.cut = true;
  run(4s);
  EXPECT_EQ(b.member->state(), Membership::cut_off);
  EXPECT_THAT(a.sees(), ElementsAre("a"));
  EXPECT_EQ(a.member->created("b"), 0);
  b.cut = false;
  run(3s);
  EXPECT_EQ(b.member->state(), Membership::member);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  // Whoever saw it before and after can tell that it was gone, it itself, too.
  EXPECT_GT(a.member->created("b"), made);
  EXPECT_EQ(b.member->created("b"), a.member->created("b"));
  EXPECT_EQ(b.member->joined(), joined);
}

TEST_F(FleetMemberTest, ThatANodeKeepsEventsIsKnownAtOnceAndChangesNothingForThePlan) {
  Node& a = start("a");
  Node& b = start("b");
  run(1s);
  const std::uint64_t changes = a.member->changes();
  b.member->alter([](NodeRecord& record) { record.keeps_events = true; });
  run(200ms);
  EXPECT_TRUE(a.member->nodes().at("b").keeps_events);
  EXPECT_EQ(a.member->changes(), changes);
}

TEST_F(FleetMemberTest, ElectsOnePlannerAndAnotherWhenThatIsGone) {
  Node& a = start("a");
  Node& b = start("b");
  Node& c = start("c");
  b.member->stand_for_planner(true);
  c.member->stand_for_planner(true);
  run(500ms);
  const std::string first = a.member->planner();
  ASSERT_TRUE(first == "b" || first == "c") << first;
  EXPECT_NE(b.member->is_planner(), c.member->is_planner());
  EXPECT_FALSE(a.member->is_planner());
  Node& loser = first == "b" ? c : b;
  kill(first == "b" ? b : c);
  run(4s);
  EXPECT_TRUE(loser.member->is_planner());
  EXPECT_EQ(a.member->planner(), loser.member->record().name);
  // Whoever does not stand any more gives it up.
  loser.member->stand_for_planner(false);
  run(500ms);
  EXPECT_EQ(a.member->planner(), "");
}

TEST_F(FleetMemberTest, APlannerThatIsCutOffDoesNotPlan) {
  Node& a = start("a");
  Node& b = start("b");
  a.member->stand_for_planner(true);
  run(500ms);
  ASSERT_TRUE(a.member->is_planner());
  const RegistryCondition held = *a.member->planner_condition();
  b.member->stand_for_planner(true);
  a.cut = true;
  run(4s);
  EXPECT_FALSE(a.member->is_planner());
  EXPECT_TRUE(b.member->is_planner());
  // Even one that does not know it yet changes nothing.
  const auto late = store_->commit({.conditions = {held}, .changes = {RegistryPut{"x", "y"}}});
  EXPECT_FALSE(std::get<RegistryCommit>(late).made);
}

TEST_F(FleetMemberTest, NoticesARegistryThatWasSetBack) {
  Node& a = start("a");
  run(200ms);
  const MemoryStore::Backup backup = store_->backup();
  Node& b = start("b");
  for (int i = 1; i < 10; ++i) {
    b.member->saw(static_cast<Fence>(i));
    run(100ms);
  }
  store_->restore(backup, 1);
  run(5s);
  EXPECT_THAT(a.member->registry_remark(), AllOf(StartsWith("went back"), HasSubstr(" (noticed 20")));
  EXPECT_THAT(a.log, AllOf(HasSubstr("registry: went back"), Not(HasSubstr("registry: registry"))));
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_EQ(b.member->state(), Membership::member);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  run(1h);
  EXPECT_EQ(a.member->registry_remark(), "") << "it is long ago";
  // What the registry has forgotten, the nodes still know.
  EXPECT_EQ(a.member->nodes().at("b").highest_fence, 9U);
}

TEST_F(FleetMemberTest, AsksAnewAndNotAgainAndAgainWhenWhatItKnowsIsNotWhatThereIs) {
  Node& a = start("a");
  Node& b = start("b");
  run(500ms);
  a.ears.is_deaf = b.ears.is_deaf = true;
  a.ears.commits = b.ears.commits = 0;
  // Its record was changed twice, and of the first change it has heard nothing.
  for (Node* node : {&a, &b}) {
    node->member->saw(5);
    node->member->contradict();
    run(500ms);
    node->member->saw(7);
    node->member->contradict();
  }
  // Who plans is free, they hear, and it is not.
  a.member->stand_for_planner(true);
  run(500ms);
  b.member->stand_for_planner(true);
  run(10s);
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_EQ(b.member->state(), Membership::member);
  EXPECT_LT(a.ears.commits, 30);
  EXPECT_LT(b.ears.commits, 30);
  EXPECT_EQ(a.member->planner(), "a");
  EXPECT_EQ(b.member->planner(), "a");
  Node& c = start("c");
  run(500ms);
  EXPECT_EQ(c.member->nodes().at("a").highest_fence, 7U);
  EXPECT_EQ(c.member->nodes().at("b").highest_fence, 7U);
}

TEST_F(FleetMemberTest, SaysOnceWhatItCannotReadAndSeesTheOthers) {
  Node& a = start("a");
  run(200ms);
  store_->commit({.conditions = {}, .changes = {RegistryPut{"/vigil/city/nodes/x", "junk"}}});
  start("b");
  run(200ms);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  EXPECT_THAT(a.log, HasSubstr("registry: /vigil/city/nodes/x: no record of a node: "));
  // One that lies under another's name is none.
  store_->commit(
      {.conditions = {}, .changes = {RegistryPut{"/vigil/city/nodes/y", print(a.member->record())}}});
  run(200ms);
  EXPECT_THAT(a.sees(), ElementsAre("a", "b"));
  EXPECT_THAT(a.log, HasSubstr("registry: /vigil/city/nodes/y: it is a record of node a"));
}

}  // namespace
}  // namespace vigil::cluster
