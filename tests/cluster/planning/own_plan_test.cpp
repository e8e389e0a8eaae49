// What a node takes of the plans that the registry tells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/planning/plan_keeper.h"
#include "cluster/registry/memory_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::VirtualLoop;
using testing::VirtualTime;

/// One node, and what the planner, or a backup, puts as its plan.
class OwnPlanTest : public ::testing::Test {
 protected:
  static NodeRecord record() {
    NodeRecord record;
    record.name = "c1";
    record.incarnation = "1";
    record.roles = {NodeRole::camera};
    record.state = NodeState::ready;
    record.control = record.bulk = {"c1", 7400};
    return record;
  }
  /// Its plan has this camera alone, as the planner, or a backup, puts it.
  void put(const std::string& camera, Fence fence) {
    NodePlan plan;
    plan.fence = plan.cameras[camera].fence = fence;
    registry_.commit({.conditions = {}, .changes = {RegistryPut{"/vigil/city/plan/c1", print(plan)}}},
                     [](const auto&) {});
    time_.advance(100ms);
  }
  void remove() {
    registry_.commit({.conditions = {}, .changes = {RegistryDelete{"/vigil/city/plan/c1"}}},
                     [](const auto&) {});
    time_.advance(100ms);
  }
  std::vector<std::string> has() const {
    std::vector<std::string> cameras;
    for (const auto& [camera, entry] : keeper_.own().cameras) cameras.push_back(camera);
    return cameras;
  }

  VirtualTime time_;
  std::shared_ptr<MemoryStore> store_ = std::make_shared<MemoryStore>(time_);
  VirtualLoop loop_{time_};
  MemoryRegistry registry_{store_, time_};
  FleetMember member_{registry_, loop_, time_, {.fleet = "city", .record = record(), .ttl = 3000ms}};
  PlanKeeper keeper_{registry_, loop_, time_, member_, {}};
};

TEST_F(OwnPlanTest, APlanOfARegistryThatWasSetBackIsNotTaken) {
  put("gate", 7);
  EXPECT_THAT(has(), ElementsAre("gate"));
  EXPECT_EQ(member_.record().highest_fence, 7U);
  put("yard", 5);
  EXPECT_THAT(has(), ElementsAre("gate"));
  put("yard", 8);
  EXPECT_THAT(has(), ElementsAre("yard"));
  remove();
  EXPECT_THAT(has(), IsEmpty());
  put("gate", 7);
  EXPECT_THAT(has(), IsEmpty()) << "it has had a later one";
}

TEST_F(OwnPlanTest, AFenceOfAnothersCameraDoesNotVoidANodesOwnPlan) {
  // A link or the dock has seen it; this node's own plan was written before, and is as it should be.
  member_.saw(1000);
  put("gate", 7);
  EXPECT_THAT(has(), ElementsAre("gate"));
  EXPECT_EQ(member_.record().highest_fence, 1000U) << "as the planner has to know it";
}

}  // namespace
}  // namespace vigil::cluster
