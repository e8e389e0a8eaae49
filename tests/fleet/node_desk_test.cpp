#include "fleet/node/node_desk.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/messages/messages.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class NodeDeskTest : public ::testing::Test {
 protected:
  using Role = cluster::NodeRole;

  static cluster::NodeRecord node(const std::string& name, const std::string& incarnation = "1",
                                  std::set<Role> roles = {Role::camera, Role::stream}) {
    cluster::NodeRecord record;
    record.name = name;
    record.incarnation = incarnation;
    record.roles = std::move(roles);
    return record;
  }
  /// This one is "m", and needs "a" and "z".
  void see(const std::vector<cluster::NodeRecord>& nodes,
           const std::set<Role>& roles = {Role::camera, Role::stream}) {
    desk_.need({"a", "z"});
    const cluster::NodeRecord self = node("m", "1", roles);
    std::map<std::string, cluster::NodeRecord> all{{"m", self}};
    for (const cluster::NodeRecord& each : nodes) all[each.name] = each;
    desk_.see(all, self);
  }
  std::vector<std::string> greeted() {
    std::vector<std::string> names;
    for (const cluster::NodeRecord& each : desk_.take_greetings()) names.push_back(each.name);
    return names;
  }

  actors::testing::ManualClock clock_;
  NodeDesk desk_{clock_};
};

TEST_F(NodeDeskTest, GreetsThoseBehindItAtOnceAndWaitsForThoseBeforeIt) {
  see({node("a"), node("z")});
  EXPECT_THAT(greeted(), ElementsAre("z"));
  EXPECT_THAT(greeted(), IsEmpty()) << "once";
  desk_.greeted("z", "1");
  EXPECT_TRUE(desk_.knows("z"));
  clock_.advance(2900ms);
  EXPECT_THAT(greeted(), IsEmpty());
  clock_.advance(200ms);
  EXPECT_THAT(greeted(), ElementsAre("a")) << "it may not be able to";
}

TEST_F(NodeDeskTest, GreetsNoneThatItHasNothingToDoWith) {
  see({node("b"), node("y"), node("z")});
  EXPECT_THAT(greeted(), ElementsAre("z"));
  clock_.advance(60s);
  EXPECT_THAT(greeted(), IsEmpty());
  EXPECT_FALSE(desk_.knows("y"));
  // It comes to need one.
  desk_.need({"y"});
  EXPECT_THAT(greeted(), ElementsAre("y"));
  // And is known to one that needs it.
  desk_.came(node("b"));
  EXPECT_TRUE(desk_.knows("b"));
}

TEST_F(NodeDeskTest, GreetsAtOnceThoseThatWouldNotGreetIt) {
  see({node("a", "1", {Role::stream})}, {Role::camera});
  EXPECT_THAT(greeted(), ElementsAre("a")) << "which is before it, and has no cameras to send it";
}

TEST_F(NodeDeskTest, LeavesItToATowerBeforeItToGreetAStreamThatCannotEncode) {
  see({node("a", "1", {Role::vision})}, {Role::stream, Role::generate});
  EXPECT_THAT(greeted(), IsEmpty()) << "it has tokens to send";
  clock_.advance(3100ms);
  EXPECT_THAT(greeted(), ElementsAre("a"));
  see({node("a", "2", {Role::vision})}, {Role::vision, Role::stream});
  EXPECT_THAT(greeted(), ElementsAre("a")) << "which has none for one that encodes";
}

TEST_F(NodeDeskTest, DealsWithThoseThatItKnowsAndThoseThatItIsToKnow) {
  see({node("b"), node("y"), node("z")});
  EXPECT_TRUE(desk_.deals_with("z"));
  EXPECT_FALSE(desk_.deals_with("y"));
  desk_.came(node("y"));
  EXPECT_TRUE(desk_.deals_with("y"));
  desk_.lost("y", "m");
  EXPECT_TRUE(desk_.deals_with("y")) << "as long as the registry tells of it";
  EXPECT_FALSE(desk_.deals_with("m"));
  EXPECT_FALSE(desk_.deals_with("stranger"));
}

TEST_F(NodeDeskTest, EverybodyGreetsGatewaysAndGatewaysGreetEverybody) {
  see({node("c", "1", {Role::gateway}), node("y", "1", {Role::gateway})}, {Role::camera});
  EXPECT_THAT(greeted(), ElementsAre("y"));
  clock_.advance(3100ms);
  EXPECT_THAT(greeted(), ElementsAre("c")) << "it was its turn";
  NodeDesk gateway(clock_);
  // The registry need not tell of it yet.
  gateway.see({{"x", node("x", "1", {Role::camera})}}, node("m", "1", {Role::gateway}));
  EXPECT_THAT(gateway.take_greetings(), ::testing::SizeIs(1));
}

TEST_F(NodeDeskTest, KeepsThoseThatCameForAWhileUntilTheRegistryTellsOfThem) {
  see({});
  desk_.came(node("q"));
  see({});
  EXPECT_TRUE(desk_.knows("q"));
  clock_.advance(31s);
  see({});
  EXPECT_FALSE(desk_.knows("q"));
  desk_.came(node("q"));
  see({node("q")});
  EXPECT_TRUE(desk_.knows("q"));
  see({});
  EXPECT_FALSE(desk_.knows("q")) << "it was there, and is gone";
}

TEST_F(NodeDeskTest, KnowsThoseThatCameByThemselves) {
  desk_.came(node("a"));
  EXPECT_TRUE(desk_.knows("a"));
  see({node("a")});
  EXPECT_TRUE(desk_.knows("a"));
  clock_.advance(10s);
  EXPECT_THAT(greeted(), IsEmpty());
}

TEST_F(NodeDeskTest, TriesAgainAfterGrowingPauses) {
  see({node("z")});
  int greetings = 0;
  for (int i = 0; i < 600; ++i) {
    for (const std::string& name : greeted()) {
      ++greetings;
      desk_.failed(name, "1", "refused");
    }
    clock_.advance(100ms);
  }
  // After 0.5, 1, 2, 4, 8 s and then every 10.
  EXPECT_EQ(greetings, 1 + 5 + 4);
  EXPECT_THAT(desk_.troubles(), ElementsAre(Pair("z", "refused")));
  EXPECT_FALSE(desk_.knows("z"));
}

TEST_F(NodeDeskTest, BeginsAnewWithEveryIncarnation) {
  see({node("z", "1")});
  greeted();
  desk_.greeted("z", "1");
  see({node("z", "2")});
  EXPECT_FALSE(desk_.knows("z"));
  EXPECT_THAT(greeted(), ElementsAre("z"));
  desk_.greeted("z", "1");
  EXPECT_FALSE(desk_.knows("z")) << "the one before answers late";
  desk_.greeted("z", "2");
  EXPECT_TRUE(desk_.knows("z"));
  see({});
  EXPECT_FALSE(desk_.knows("z"));
  EXPECT_THAT(desk_.known(), IsEmpty());
}

TEST_F(NodeDeskTest, GreetsAnewWhenTheWayToOneBreaksWhoseLeaseHolds) {
  see({node("a"), node("z")});
  greeted();
  desk_.greeted("z", "1");
  desk_.came(node("a"));
  desk_.lost("z", "m");
  desk_.lost("a", "m");
  EXPECT_THAT(desk_.known(), IsEmpty());
  see({node("a"), node("z")});
  EXPECT_THAT(greeted(), ElementsAre("z")) << "as at the beginning, whose turn it is";
  desk_.lost("z", "m");
  EXPECT_THAT(greeted(), IsEmpty()) << "it is being greeted";
  clock_.advance(3100ms);
  EXPECT_THAT(greeted(), ElementsAre("a"));
  desk_.lost("stranger", "m");
  EXPECT_FALSE(desk_.knows("stranger"));
}

TEST_F(NodeDeskTest, AsksThoseThatItKnowsEveryTenSecondsWhicheverSideItIs) {
  see({node("a"), node("z")});
  greeted();
  desk_.greeted("z", "1");
  desk_.came(node("a"));
  std::map<std::string, int> asked;
  const auto pass = [&](base::Duration span) {
    for (base::Duration done{0}; done < span; done += 500ms) {
      clock_.advance(500ms);
      for (const cluster::NodeRecord& each : desk_.take_checks()) ++asked[each.name];
    }
  };
  pass(100s);
  EXPECT_THAT(asked, ElementsAre(Pair("a", 10), Pair("z", 10)));
  asked.clear();
  for (int i = 0; i < 10; ++i) {
    desk_.checked("a", "1", "");
    pass(9s);
  }
  EXPECT_THAT(asked, ElementsAre(Pair("z", 9))) << "the other one has asked it";
}

TEST_F(NodeDeskTest, AtAGatewayThoseThatAreAskedAreSpread) {
  std::vector<cluster::NodeRecord> nodes;
  for (int i = 0; i < 1000; ++i) nodes.push_back(node("n" + std::to_string(i)));
  see(nodes, {Role::gateway});
  greeted();
  for (const cluster::NodeRecord& each : nodes) desk_.greeted(each.name, "1");
  std::size_t all = 0, most = 0;
  for (int i = 0; i < 120; ++i) {
    clock_.advance(500ms);
    const std::size_t now = desk_.take_checks().size();
    all += now;
    most = std::max(most, now);
  }
  EXPECT_GT(all, 5000U);
  EXPECT_LT(most, 150U) << "of a thousand, in half a second";
}

TEST_F(NodeDeskTest, OneThatDoesNotAnswerIsAskedSoonAgainAndAClockBreaksNoWay) {
  see({node("z")});
  greeted();
  desk_.greeted("z", "1");
  EXPECT_TRUE(desk_.reaches("z"));
  clock_.advance(10s);
  ASSERT_EQ(desk_.take_checks().size(), 1U);
  EXPECT_TRUE(desk_.checked("z", "1", "it does not answer"));
  EXPECT_FALSE(desk_.checked("z", "1", "it does not answer")) << "is no news";
  EXPECT_FALSE(desk_.reaches("z"));
  EXPECT_TRUE(desk_.knows("z")) << "what is under way goes on";
  EXPECT_THAT(desk_.troubles(), ElementsAre(Pair("z", "it does not answer")));
  clock_.advance(2s);
  EXPECT_EQ(desk_.take_checks().size(), 1U);
  EXPECT_TRUE(desk_.checked("z", "1", "clocks are apart: that of z is at least 5s ahead of that of m"));
  EXPECT_TRUE(desk_.reaches("z"));
  EXPECT_FALSE(desk_.checked("z", "2", "")) << "of another process";
  EXPECT_TRUE(desk_.checked("z", "1", ""));
  EXPECT_THAT(desk_.troubles(), IsEmpty());
}

TEST_F(NodeDeskTest, ItsClockIsOffIfMostSayIt) {
  see({node("a"), node("z")});
  greeted();
  desk_.greeted("z", "1");
  desk_.came(node("a"));
  EXPECT_FALSE(desk_.is_clock_off());
  desk_.checked("z", "1", "clocks are apart: that of z is at least 5s ahead of that of m");
  EXPECT_FALSE(desk_.is_clock_off()) << "of two, one has its time";
  desk_.checked("a", "1", "it does not answer");
  EXPECT_TRUE(desk_.is_clock_off()) << "nobody whose clock is known";
  desk_.checked("a", "1",
                "it refuses this node: clocks are apart: that of m is at least 5s behind that of a");
  EXPECT_TRUE(desk_.is_clock_off());
  desk_.checked("z", "1", "");
  EXPECT_FALSE(desk_.is_clock_off());
}

TEST_F(NodeDeskTest, WhoHasNoWayToAnybodyTriesThreeAtATimeAndOthersThanThoseThatItTriedInVain) {
  const std::vector<cluster::NodeRecord> nodes = {
      node("n1", "1", {Role::stream}), node("n2", "1", {Role::stream}), node("n3", "1", {Role::stream}),
      node("n4", "1", {Role::stream}), node("n5", "1", {Role::camera})};
  see(nodes, {Role::camera});
  EXPECT_TRUE(desk_.has_counterparts());
  EXPECT_FALSE(desk_.reaches_a_counterpart());
  clock_.advance(4s);
  std::vector<std::string> first = greeted();
  ASSERT_EQ(first.size(), 3U);
  for (const std::string& each : first) desk_.failed(each, "1", "nobody listens there");
  clock_.advance(4s);
  std::set<std::string> tried(first.begin(), first.end());
  for (std::string& each : greeted()) tried.insert(std::move(each));
  EXPECT_EQ(tried, (std::set<std::string>{"n1", "n2", "n3", "n4"})) << "a camera node is no help to another";
  desk_.greeted("n2", "1");
  EXPECT_TRUE(desk_.reaches_a_counterpart());
  clock_.advance(60s);
  EXPECT_THAT(greeted(), IsEmpty()) << "one is enough";
}

TEST_F(NodeDeskTest, WhoTriesInVainTriesAllOfThem) {
  std::vector<cluster::NodeRecord> nodes;
  std::set<std::string> all, tried;
  for (int i = 0; i < 10; ++i) {
    nodes.push_back(node("n" + std::to_string(i), "1", {Role::stream}));
    all.insert(nodes.back().name);
  }
  see(nodes, {Role::camera});
  for (int round = 0; round < 8; ++round) {
    const std::vector<std::string> now = greeted();
    EXPECT_LE(now.size(), 3U);
    EXPECT_THAT(greeted(), IsEmpty()) << "while those are asked";
    for (const std::string& each : now) desk_.failed(each, "1", "nobody listens there");
    tried.insert(now.begin(), now.end());
    clock_.advance(4s);
  }
  EXPECT_EQ(tried, all);
}

TEST_F(NodeDeskTest, AGatewayIsNoHelpToOneThatHasWorkAndAllAreToAGateway) {
  const std::vector<cluster::NodeRecord> nodes = {node("w", "1", {Role::gateway}),
                                                  node("g", "1", {Role::stream})};
  see(nodes, {Role::camera});
  desk_.came(nodes[0]);
  EXPECT_TRUE(desk_.has_counterparts());
  EXPECT_FALSE(desk_.reaches_a_counterpart());
  clock_.advance(4s);
  EXPECT_THAT(greeted(), ElementsAre("g")) << "it is tried, although no camera needs it";
  see(nodes, {Role::gateway});
  EXPECT_TRUE(desk_.reaches_a_counterpart());
}

TEST_F(NodeDeskTest, KnowsWhetherThereWasAWayToThisRunOfANode) {
  see({node("z")});
  EXPECT_FALSE(desk_.had_way("z", "1"));
  desk_.greeted("z", "1");
  desk_.lost("z", "m");
  EXPECT_FALSE(desk_.knows("z"));
  EXPECT_TRUE(desk_.had_way("z", "1"));
  EXPECT_FALSE(desk_.had_way("z", "2"));
  see({node("z", "2")});
  EXPECT_FALSE(desk_.had_way("z", "1"));
  EXPECT_FALSE(desk_.had_way("z", "2"));
}

TEST(Successors, AreOthersOfTheSameRoleThatAreReady) {
  const auto node = [](const std::string& name, std::set<cluster::NodeRole> roles, cluster::NodeState state) {
    cluster::NodeRecord record;
    record.name = name;
    record.roles = std::move(roles);
    record.state = state;
    return record;
  };
  using enum cluster::NodeRole;
  const cluster::NodeRecord self = node("c1", {camera, vision}, cluster::NodeState::ready);
  std::map<std::string, cluster::NodeRecord> nodes{{"c1", self}};
  EXPECT_FALSE(has_successor(nodes, self, camera)) << "it is alone";
  nodes["c2"] = node("c2", {camera}, cluster::NodeState::draining);
  nodes["c3"] = node("c3", {camera}, cluster::NodeState::joining);
  nodes["g1"] = node("g1", {stream, vision}, cluster::NodeState::ready);
  EXPECT_FALSE(has_successor(nodes, self, camera)) << "none that takes any";
  EXPECT_TRUE(has_successor(nodes, self, vision));
  EXPECT_FALSE(has_successor(nodes, self, stream)) << "it does nothing of that itself";
  nodes["c3"].state = cluster::NodeState::ready;
  EXPECT_TRUE(has_successor(nodes, self, camera));
}

TEST(ComputingNodes, AreThoseOfTheCamerasThatHaveOne) {
  cluster::NodePlan plan;
  const auto add = [&](const std::string& camera, const std::string& vision, const std::string& stream) {
    plan.cameras[camera].vision = vision;
    plan.cameras[camera].stream = stream;
  };
  add("a", "g1", "g1");
  add("b", "g2", "g2");
  add("c", "g1", "g1");
  add("d", "", "");
  add("e", "v1", "g1");
  add("f", "", "g1");
  EXPECT_THAT(computing_nodes(plan), ElementsAre(Pair("g1", "g1"), Pair("g2", "g2"), Pair("v1", "g1")));
  EXPECT_THAT(nodes_for(plan), ElementsAre("g1", "g2", "v1"));
  EXPECT_EQ(device_of("g1", "g1"), "g1");
  EXPECT_EQ(device_of("v1", "g1"), "v1>g1");
  EXPECT_EQ(device_of("", "g1"), "") << "nobody encodes it";
}

TEST(ComputingNodes, FormersComputeToo) {
  cluster::NodePlan plan;
  cluster::PlannedCamera& camera = plan.cameras["a"];
  camera.vision = camera.stream = "new";
  EXPECT_EQ(former_device_of(camera), "");
  camera.former_stream = "old";
  EXPECT_EQ(former_device_of(camera), "old");
  EXPECT_THAT(nodes_for(plan), ElementsAre("new", "old"));
  camera.former_vision = "tower";
  EXPECT_EQ(former_device_of(camera), "tower>old");
  EXPECT_THAT(computing_nodes(plan), ElementsAre(Pair("new", "new"), Pair("tower", "old")));
  const cluster::FleetPlan fleet{{"c1", plan}};
  const std::map<std::string, cluster::NodeRecord> nodes{{"c1", {}}, {"other", {}}};
  for (const char* node : {"new", "old", "tower"}) EXPECT_TRUE(computes(fleet, nodes, node)) << node;
  EXPECT_FALSE(computes(fleet, nodes, "other"));
  EXPECT_FALSE(computes(fleet, {{"other", {}}}, "new")) << "nobody is there whom it would serve";
}

TEST_F(NodeDeskTest, NamesOfWhichTheRegistryDoesNotTellAreBounded) {
  see({node("a"), node("z")});
  for (std::size_t i = 0; i < NodeDesk::kMostUnseen; ++i)
    EXPECT_TRUE(desk_.came(node("made up " + std::to_string(i))));
  EXPECT_FALSE(desk_.came(node("one more")));
  EXPECT_FALSE(desk_.knows_of("one more"));
  EXPECT_EQ(desk_.known().size(), NodeDesk::kMostUnseen);
  EXPECT_TRUE(desk_.came(node("z"))) << "the registry tells of it";
  EXPECT_TRUE(desk_.came(node("made up 0"))) << "it is there already";
  // One of them is of the fleet, and makes room by that.
  see({node("a"), node("made up 7"), node("z")});
  EXPECT_TRUE(desk_.came(node("one more")));
  EXPECT_FALSE(desk_.came(node("another")));
  // The others have had their time, though nothing changed in the registry.
  clock_.advance(31s);
  EXPECT_TRUE(desk_.came(node("another")));
  EXPECT_TRUE(desk_.knows("made up 7") && desk_.knows("z"));
  EXPECT_FALSE(desk_.knows_of("made up 1"));
}

}  // namespace
}  // namespace vigil::fleet
