// What of each camera's stream a fleet has room for, as it is planned.
#include "cluster/planning/stream_admission.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planned_fleet.h"

namespace vigil::cluster {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

/// A stream takes 1, with less frames 0.5, with a longer stride
/// 0.25.
class AdmissionTest : public testing::PlannedFleet {
 protected:
  AdmissionTest() {
    add("c0", {NodeRole::camera});
    for (const char* name : {"g0", "g1"}) gpu(name, 2);
  }
  void gpu(const std::string& name, double streams) { PlannedFleet::gpu(name).streams = streams; }
  WantedCamera& camera(const std::string& name, std::int64_t priority = 0) {
    WantedCamera camera{.name = name, .less = ladder_, .priority = priority};
    const auto place = std::ranges::lower_bound(input_.cameras, name, {}, &WantedCamera::name);
    return *input_.cameras.insert(place, std::move(camera));
  }
  void cameras(int count) {
    for (int i = 0; i < count; ++i) camera("cam-" + std::to_string(i));
  }
  Planning plan() {
    Planning planning = plan_fleet(input_, options_);
    for (const PlanChange& change : planning.changes) write(change);
    // None of them takes more than it has.
    std::map<std::string, double> loads;
    for (const WantedCamera& camera : input_.cameras) loads[entry(camera.name).stream] += load(camera.name);
    for (const auto& [name, record] : input_.nodes)
      if (record.streams > 0) {
        EXPECT_LE(loads[name], record.streams) << name;
      }
    return planning;
  }
  const PlannedCamera& entry(const std::string& camera) const {
    return input_.plan.at(owner_of(input_.plan, camera)).cameras.at(camera);
  }
  double load(const std::string& camera) const {
    const std::string& rung = entry(camera).rung;
    return rung.empty() ? 1 : rung == "fewer frames" ? 0.5 : rung == "longer stride" ? 0.25 : 0;
  }
  /// How many cameras there are of each.
  std::map<std::string, int> rungs() const {
    std::map<std::string, int> counts;
    for (const WantedCamera& camera : input_.cameras) ++counts[entry(camera.name).rung];
    return counts;
  }

  const std::shared_ptr<const std::vector<StreamRung>> ladder_ =
      std::make_shared<const std::vector<StreamRung>>(
          std::vector<StreamRung>{{"fewer frames", 0.5, 0.25}, {"longer stride", 0.25, 0.125}});
};

TEST_F(AdmissionTest, WhereThereIsRoomAllAreFull) {
  cameras(4);
  const Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 4)));
  EXPECT_THAT(planning.unplaced, IsEmpty());
  EXPECT_EQ(planning.degraded, 0U);
  EXPECT_EQ(entry("cam-0").why_rung, "");
}

TEST_F(AdmissionTest, WhereThereIsNotSomeAreLoweredAndAllHaveAStream) {
  cameras(5);
  const Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3), Pair("fewer frames", 2)));
  EXPECT_THAT(planning.unplaced, IsEmpty());
  EXPECT_EQ(planning.degraded, 2U);
  EXPECT_EQ(planning.refused, 0U);
  EXPECT_EQ(entry("cam-4").rung, "fewer frames") << "the last of them by name, as all were added at once";
  EXPECT_EQ(entry("cam-4").why_rung, "fewer frames: the fleet has room for 4 of 5");
  EXPECT_THAT(plan().changes, IsEmpty()) << "planned once, it stays";
}

TEST_F(AdmissionTest, ThoseThatWereAddedLastComeFirst) {
  cameras(4);
  plan();
  input_.wall += std::chrono::seconds(1);
  camera("a-new-one");
  plan();
  EXPECT_EQ(entry("a-new-one").rung, "fewer frames");
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3), Pair("fewer frames", 2)));
}

TEST_F(AdmissionTest, ThoseOfASmallerPriorityAreLoweredByAllStepsBeforeOthersAre) {
  for (const char* name : {"a", "b", "c"}) camera(name, 1);
  for (const char* name : {"x", "y", "z"}) camera(name);
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3), Pair("fewer frames", 1), Pair("longer stride", 2)));
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(entry(name).rung, "") << name;
}

TEST_F(AdmissionTest, ANodeThatIsLostLowersWhatIsLeftAndItsReturnRaisesIt) {
  cameras(3);
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3)));
  input_.nodes.erase("g1");
  Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 1), Pair("fewer frames", 2)));
  for (const WantedCamera& camera : input_.cameras) EXPECT_EQ(entry(camera.name).stream, "g0");
  EXPECT_EQ(planning.degraded, 2U);
  gpu("g1", 2);
  planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3)));
  EXPECT_EQ(planning.degraded, 0U);
  EXPECT_EQ(entry("cam-2").why_rung, "");
}

TEST_F(AdmissionTest, NothingIsRaisedWithoutRoomToSpare) {
  cameras(4);
  input_.nodes.erase("g1");
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("fewer frames", 4)));
  gpu("g1", 2);
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 3), Pair("fewer frames", 1))) << "all would leave nothing free";
  EXPECT_EQ(entry("cam-3").why_rung, "fewer frames: the fleet has room for 2 of 4")
      << "why it came to it, and the plan is not written anew for another reason";
  input_.nodes.at("g1").streams = 2.3;
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 4)));
}

TEST_F(AdmissionTest, WhatDoesNotFitAtTheLeastIsRefused) {
  input_.nodes.erase("g1");
  cameras(10);
  const Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("longer stride", 8), Pair("refused", 2)));
  EXPECT_EQ(planning.refused, 2U);
  EXPECT_EQ(planning.degraded, 8U);
  const std::string why = "refused: the fleet has room for 2 of 10, with all at the least";
  EXPECT_THAT(planning.unplaced, UnorderedElementsAre(Pair("cam-8", why), Pair("cam-9", why)));
  for (const char* name : {"cam-8", "cam-9"}) {
    EXPECT_EQ(entry(name).stream, "");
    EXPECT_EQ(entry(name).vision, "") << "nobody encodes it either";
    EXPECT_EQ(entry(name).generate, "");
    EXPECT_EQ(entry(name).why_rung, why);
    EXPECT_GT(entry(name).fence, 0U) << "it is read";
  }
  const Planning again = plan();
  EXPECT_THAT(again.changes, IsEmpty());
  EXPECT_EQ(again.refused, 2U);
}

TEST_F(AdmissionTest, OneThatMayNotBeLoweredIsFullOrRefused) {
  input_.nodes.erase("g1");
  for (const char* name : {"a", "b", "c"}) camera(name).less = nullptr;
  const Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 2), Pair("refused", 1)));
  EXPECT_THAT(planning.unplaced, ElementsAre(Pair("c", HasSubstr("refused"))));
}

TEST_F(AdmissionTest, RoomThatIsScatteredIsNoRoom) {
  // Six units, of which no node has one and a half.
  input_.nodes.erase("g1");
  for (int i = 0; i < 5; ++i) gpu("g" + std::to_string(i), 1.2);
  for (int i = 0; i < 6; ++i) camera("cam-" + std::to_string(i));
  const Planning planning = plan();
  EXPECT_THAT(planning.unplaced, IsEmpty());
  for (const WantedCamera& camera : input_.cameras) EXPECT_NE(entry(camera.name).stream, "");
  EXPECT_GT(planning.degraded, 0U);
  for (int i = 0; i < 5; ++i) {
    if (i == 4) {
      EXPECT_THAT(plan().changes, IsEmpty()) << "it comes to rest";
    } else {
      plan();
    }
  }
}

TEST_F(AdmissionTest, ANodeWithoutABoundTakesAll) {
  gpu("g1", 0);
  cameras(50);
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 50)));
}

TEST_F(AdmissionTest, NodesThatDrainOrAreNotReadyHaveNoRoom) {
  cameras(4);
  plan();
  input_.nodes.at("g1").state = NodeState::draining;
  plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("fewer frames", 4)));
}

TEST_F(AdmissionTest, WithNoNodeThatStreamsRungsStayAsTheyAre) {
  cameras(5);
  plan();
  const auto before = rungs();
  input_.nodes.erase("g0");
  input_.nodes.erase("g1");
  const Planning planning = plan();
  EXPECT_EQ(rungs(), before);
  EXPECT_EQ(planning.refused, 0U) << "nobody was asked";
  EXPECT_THAT(planning.unplaced, ::testing::SizeIs(5));
}

TEST_F(AdmissionTest, ARungOfAnotherConfigurationIsForgotten) {
  cameras(5);
  plan();
  for (WantedCamera& camera : input_.cameras) camera.less = nullptr;
  const Planning planning = plan();
  EXPECT_THAT(rungs(), ElementsAre(Pair("", 4), Pair("refused", 1)));
  EXPECT_EQ(planning.refused, 1U);
}

TEST_F(AdmissionTest, WhatNobodyReadsTakesNoRoom) {
  input_.nodes.at("c0").cameras = 4;
  cameras(6);
  const Planning planning = plan_fleet(input_, options_);
  for (const auto& [name, each] : planning.changes.front().plan->cameras) EXPECT_EQ(each.rung, "") << name;
  EXPECT_EQ(planning.degraded, 0U);
}

TEST_F(AdmissionTest, ItIsWrittenInThePlan) {
  NodePlan plan;
  PlannedCamera& camera = plan.cameras["gate"];
  camera.rung = "fewer frames";
  camera.why_rung = "fewer frames: there is no room";
  EXPECT_EQ(parse_plan(print(plan)), plan);
}

}  // namespace
}  // namespace vigil::cluster
