// Plans that are written after whoever sent them has given them up, or that the next planner has not heard
// of.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cluster/planning/planned_fleet.h"
#include "tests/cluster/planning/planning_nodes.h"

namespace vigil::cluster {
namespace {

using namespace std::chrono_literals;
using ::testing::Each;
using ::testing::Gt;
using ::testing::IsEmpty;
using Node = testing::PlanningNode;
using ::testing::Not;
using ::testing::SizeIs;

constexpr std::size_t kCameras = 6;

class LatePlanTest : public testing::PlanningNodes {
 protected:
  /// A few, and this one.
  static void want_with(Node& node, const std::string& camera) {
    std::vector<WantedCamera> wanted;
    for (std::size_t i = 0; i < kCameras; ++i) wanted.push_back({"cam-" + std::to_string(i)});
    if (!camera.empty()) wanted.push_back({camera});
    node.keeper->want(std::move(wanted));
  }
  /// It has room for what it has, and no more.
  static void fill(Node& node) {
    node.member->alter([most = static_cast<double>(node.keeper->own().cameras.size())](NodeRecord& record) {
      record.cameras = most;
    });
  }
  static std::set<std::string> keys_of(const RegistryTransaction& transaction) {
    std::set<std::string> keys;
    for (const RegistryChange& change : transaction.changes)
      if (const auto* const put = std::get_if<RegistryPut>(&change)) keys.insert(put->key);
    return keys;
  }
  static bool have_one_in_common(const std::set<std::string>& one, const std::set<std::string>& other) {
    return std::ranges::any_of(one, [&](const std::string& each) { return other.contains(each); });
  }
  bool is_made(const RegistryTransaction& transaction) const {
    return std::get<RegistryCommit>(store_->commit(transaction)).made;
  }
  /// By all plans of the registry.
  std::map<Fence, std::vector<std::string>> holders() const {
    std::map<Fence, std::vector<std::string>> holders;
    for (const RegistryEntry& entry : store_->range("/vigil/city/plan/").entries)
      for (const auto& [camera, planned] : parse_plan(entry.value).cameras)
        holders[planned.fence].push_back(camera + " at " + entry.key);
    return holders;
  }
};

TEST_F(LatePlanTest, FencesOfAPlanThatIsWrittenLateAreGivenToNobodyElse) {
  Node& planner = start("p", {NodeRole::stream});
  planner.member->stand_for_planner(true);
  for (const char* name : {"a", "b", "c", "d"}) start(name, {NodeRole::camera});
  want_with(planner, "");
  run(5s);
  ASSERT_THAT(counts(), SizeIs(kCameras));
  planner.lossy.loses_plans = true;
  planner.lossy.sent.clear();
  want_with(planner, "first");
  run(200ms);
  ASSERT_THAT(planner.lossy.sent, SizeIs(1));
  const RegistryTransaction late = planner.lossy.sent.front();
  // Another plan in its place, of other nodes.
  for (Node& node : nodes_)
    if (keys_of(late).contains("/vigil/city/plan/" + node.member->record().name)) fill(node);
  run(200ms);
  want_with(planner, "second");
  run(3s);
  ASSERT_FALSE(have_one_in_common(keys_of(planner.lossy.sent.back()), keys_of(late)));
  ASSERT_TRUE(is_made(planner.lossy.sent.back()));
  ASSERT_TRUE(is_made(late));
  for (const auto& [fence, cameras] : holders()) EXPECT_THAT(cameras, SizeIs(1)) << fence;
  planner.lossy.loses_plans = false;
  run(10s);
  EXPECT_THAT(counts(), SizeIs(kCameras + 1));
  for (const auto& [fence, cameras] : holders()) EXPECT_THAT(cameras, SizeIs(1)) << fence;
}

TEST_F(LatePlanTest, WhoIsElectedReadsWhatTheOneBeforeItHasWrittenThoughNoNewsOfItCame) {
  Node& planner = start("p", {NodeRole::stream});
  planner.member->stand_for_planner(true);
  for (const char* name : {"a", "b", "c", "d"}) start(name, {NodeRole::camera});
  Node& next = start("q", {NodeRole::gateway});
  next.keeper->follow();
  want_with(planner, "");
  run(5s);
  const auto owner = [&] {
    FleetPlan plan;
    for (const RegistryEntry& entry : store_->range("/vigil/city/plan/").entries)
      plan[entry.key] = parse_plan(entry.value);
    return owner_of(plan, "first");
  };
  want_with(planner, "first");
  run(3s);
  const std::string place = owner();
  want_with(planner, "");
  run(3s);
  ASSERT_EQ(owner(), "");
  // From now on nothing of what is planned comes to the next one, nor to the node that it is for, which would
  // tell of it.
  next.lossy.hears_no_plans = true;
  const auto full = std::ranges::find_if(
      nodes_, [&](const Node& node) { return place == "/vigil/city/plan/" + node.member->record().name; });
  ASSERT_NE(full, nodes_.end()) << place;
  full->lossy.hears_no_plans = true;
  want_with(planner, "first");
  run(500ms);
  ASSERT_EQ(owner(), place);
  const Fence given = holders().rbegin()->first;
  kill(planner);
  // So that the next plan is of other nodes: one that is for the same node finds that it was altered.
  fill(*full);
  const std::string other = "other";
  want_with(next, other);
  next.member->stand_for_planner(true);
  run(10s);
  ASSERT_TRUE(next.member->is_planner());
  std::vector<Fence> fences;
  for (const RegistryTransaction& transaction : next.lossy.sent)
    for (const RegistryChange& change : transaction.changes)
      if (const auto* const put = std::get_if<RegistryPut>(&change)) {
        const NodePlan plan = parse_plan(put->value);
        if (const auto entry = plan.cameras.find(other); entry != plan.cameras.end())
          fences.push_back(entry->second.fence);
      }
  EXPECT_THAT(fences, Not(IsEmpty()));
  EXPECT_THAT(fences, Each(Gt(given))) << "the last planner gave that one to another camera";
}

class SentFencesTest : public testing::PlannedFleet {
 protected:
  std::map<std::string, Fence> fences() {
    for (const PlanChange& change : plan_fleet(input_, options_).changes) write(change);
    std::map<std::string, Fence> fences;
    for (const auto& [node, plan] : input_.plan)
      for (const auto& [camera, entry] : plan.cameras) fences[camera] = entry.fence;
    return fences;
  }
};

TEST_F(SentFencesTest, WhatIsGivenIsAboveWhatWasSentAndNothingElseIsGivenAnew) {
  add("a", {NodeRole::camera});
  gpu("g");
  input_.cameras = {{"one"}};
  const std::map<std::string, Fence> before = fences();
  input_.least_fence = 100;
  input_.cameras = {{"one"}, {"two"}};
  std::map<std::string, Fence> after = fences();
  EXPECT_EQ(after.at("one"), before.at("one"));
  EXPECT_GT(after.at("two"), 100U);
  EXPECT_THAT(plan_fleet(input_, options_).changes, IsEmpty());
  // That a node knows a higher fence than the plan has says the same as before.
  input_.least_fence = 1000;
  input_.nodes.at("g").highest_fence = 500;
  after = fences();
  EXPECT_GT(after.at("one"), 1000U);
  EXPECT_GT(after.at("two"), 1000U);
}

}  // namespace
}  // namespace vigil::cluster
