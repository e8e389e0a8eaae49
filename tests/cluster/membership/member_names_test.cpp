// Who has a name, and when others are told of it.
#include "tests/cluster/membership/member_world.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using MemberNamesTest = testing::FleetMemberTest;

/// At another address than nodes of that name have.
FleetMember::Options elsewhere() {
  FleetMember::Options options;
  options.record.control = {"elsewhere", 7400};
  return options;
}

TEST_F(MemberNamesTest, ARestartedNodeHasItsNameAtOnce) {
  Node& a = start("a", "1");
  Node& watcher = start("w");
  run(200ms);
  kill(a);
  Node& again = start("a", "2");
  run(200ms);
  EXPECT_EQ(again.member->state(), Membership::member);
  EXPECT_EQ(watcher.member->nodes().at("a").incarnation, "2");
  // The lease of the first one ends, and takes nothing along.
  run(10s);
  EXPECT_EQ(again.member->state(), Membership::member);
  EXPECT_THAT(watcher.sees(), ElementsAre("a", "w"));
}

TEST_F(MemberNamesTest, TheOlderOfTwoOfOneNameKnowsThatItHasToEnd) {
  Node& a = start("a", "1");
  run(200ms);
  Node& other = start("a", "2");
  run(200ms);
  EXPECT_EQ(a.member->state(), Membership::replaced);
  EXPECT_THAT(a.log, HasSubstr("another node is called a now: the one at a:7400"));
  EXPECT_EQ(other.member->state(), Membership::member);
  run(10s);
  EXPECT_EQ(a.member->state(), Membership::replaced);
  EXPECT_EQ(other.member->state(), Membership::member);
}

TEST_F(MemberNamesTest, ASecondOneOfANameThatLivesIsRefusedBeforeItWritesAnything) {
  Node& a = start("a", "1");
  run(200ms);
  const Revision before = store_->header().revision;
  Node& other = start("a", "2", elsewhere());
  run(4s);
  EXPECT_EQ(other.member->state(), Membership::joining) << "that one may be gone, and its lease not yet";
  EXPECT_EQ(other.log, "waits: a node is called a already, at a:7400, until its lease ends\n");
  run(6s);
  EXPECT_EQ(other.member->state(), Membership::replaced);
  EXPECT_THAT(other.log, HasSubstr("another node is called a, and goes on: the one at a:7400"));
  EXPECT_EQ(a.member->state(), Membership::member);
  EXPECT_EQ(store_->header().revision, before);
}

TEST_F(MemberNamesTest, ARestartedOneAtAnotherAddressHasItsNameWhenTheLeaseEnds) {
  Node& a = start("a", "1");
  run(200ms);
  kill(a);
  Node& again = start("a", "2", elsewhere());
  run(1s);
  EXPECT_EQ(again.member->state(), Membership::joining);
  run(2500ms);
  EXPECT_EQ(again.member->state(), Membership::member);
}

TEST_F(MemberNamesTest, WhoeverHasItsNameAtItsOwnAddressIsLookedAtFirst) {
  start("a", "1");
  run(200ms);
  FleetMember::Options options;
  int looked = 0;
  options.namesake = [&](const NodeRecord& there) {
    EXPECT_EQ(there.incarnation, "1");
    ++looked;
  };
  Node& other = start("a", "2", options);
  run(1s);
  EXPECT_EQ(looked, 1);
  EXPECT_EQ(other.member->state(), Membership::joining);
  other.member->take_name();
  run(200ms);
  EXPECT_EQ(other.member->state(), Membership::member);
}

/// What was seen of one process says nothing of the next one of its name.
TEST_F(MemberNamesTest, WhoeverMayHaveTheNameOfOneThatIsOverMayNotTakeItFromAnother) {
  Node& former = start("a", "1");
  run(200ms);
  FleetMember::Options options;
  options.namesake = [](const NodeRecord&) {};
  // So that it has asked, and does not come before the other one.
  options.entering = [] {};
  Node& late = start("a", "2", options);
  run(1s);
  late.member->take_name();
  kill(former);
  Node& other = start("a", "3", elsewhere());
  run(4s);
  ASSERT_EQ(other.member->state(), Membership::member);
  late.member->enter();
  run(2s);
  EXPECT_EQ(other.member->state(), Membership::member) << other.log;
  EXPECT_NE(late.member->state(), Membership::member);
  run(10s);
  EXPECT_EQ(late.member->state(), Membership::replaced);
}

TEST_F(MemberNamesTest, OthersAreToldOfItWhenItHasLookedAtThem) {
  Node& a = start("a");
  run(200ms);
  FleetMember::Options options;
  int entering = 0;
  options.entering = [&] { ++entering; };
  Node& b = start("b", "1", options);
  run(1s);
  EXPECT_EQ(entering, 1);
  EXPECT_THAT(b.sees(), ElementsAre("a")) << "it knows who is there";
  EXPECT_THAT(a.sees(), ElementsAre("a"));
  b.member->alter([](NodeRecord& record) { record.apart = true; });
  b.member->enter();
  run(200ms);
  EXPECT_TRUE(a.member->nodes().at("b").apart) << "with what is told first";
}

TEST_F(MemberNamesTest, WhomItCannotReachCanWaitAndCountsForThePlan) {
  for (int i = 0; i < 100; ++i) start("n" + std::to_string(i));
  run(1s);
  Node& watcher = nodes_.front();
  const Revision before = store_->header().revision;
  const std::uint64_t changes = watcher.member->changes();
  for (Node& node : nodes_) node.member->alter([](NodeRecord& record) { record.unreachable = {"g"}; });
  run(200ms);
  EXPECT_LT(store_->header().revision - before, 40)
      << "of a hundred nodes, so many within 200 ms of a second";
  run(1s);
  EXPECT_EQ(store_->header().revision - before, 100);
  EXPECT_EQ(watcher.member->changes() - changes, 100U);
}

TEST_F(MemberNamesTest, WhoLostItsNameWhileItWasAwayDoesNotTakeItBack) {
  // Whether it hears first of its lease or of the other one.
  for (int i = 0; i < 12; ++i) {
    const std::string name = "a" + std::to_string(i);
    Node& a = start(name, "1");
    run(200ms);
    a.cut = true;
    run(4s);
    Node& other = start(name, "2");
    run(200ms + 50ms * i);
    ASSERT_EQ(other.member->state(), Membership::member);
    a.cut = false;
    run(10s);
    EXPECT_EQ(a.member->state(), Membership::replaced) << i;
    EXPECT_EQ(other.member->state(), Membership::member) << i;
  }
}

}  // namespace
}  // namespace vigil::cluster
