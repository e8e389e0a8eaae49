#include "fleet/node/node_desk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/messages.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class NodeDeskTest : public ::testing::Test {
 protected:
  static cluster::NodeRecord node(const std::string& name, const std::string& incarnation = "1") {
    cluster::NodeRecord record;
    record.name = name;
    record.incarnation = incarnation;
    return record;
  }
  /// This one is "m".
  void see(const std::vector<cluster::NodeRecord>& nodes) {
    std::map<std::string, cluster::NodeRecord> all{{"m", node("m")}};
    for (const cluster::NodeRecord& each : nodes) all[each.name] = each;
    desk_.see(all, "m");
  }
  std::vector<std::string> greeted() {
    std::vector<std::string> names;
    for (const cluster::NodeRecord& each : desk_.take_greetings()) names.push_back(each.name);
    return names;
  }

  actors::testing::ManualClock clock_;
  NodeDesk desk_{"city", clock_};
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
  EXPECT_EQ(device_of("g1", "g1"), "g1");
  EXPECT_EQ(device_of("v1", "g1"), "v1>g1");
  EXPECT_EQ(device_of("", "g1"), "") << "nobody encodes it";
}

}  // namespace
}  // namespace vigil::fleet
