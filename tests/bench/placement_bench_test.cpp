#include "bench/placement_bench.h"

#include <algorithm>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/placement_controls.h"
#include "bench/placement_day.h"

namespace vigil::bench {
namespace {

using cluster::PlacementNodeState;

std::size_t in_count(const PlacementFleet& fleet) {
  return static_cast<std::size_t>(
      std::count_if(fleet.nodes.begin(), fleet.nodes.end(),
                    [](const cluster::PlacementNode& node) { return node.state == PlacementNodeState::in; }));
}

PlacementMinute changed_nodes() {
  PlacementMinute minute;
  minute.changed_nodes = true;
  return minute;
}

TEST(PlacementDay, CamerasComeAndGoAsOftenAsIsSaid) {
  const PlacementFleetOptions options{.cameras = 5000, .nodes = 10, .mixed_loads = true, .seed = 3};
  PlacementFleet fleet = placement_fleet(options);
  std::set<std::string> ever;
  for (const auto& camera : fleet.cameras) ever.insert(camera.name);
  PlacementDay day(fleet, options, {.departures = 0, .cameras = 0.5});
  std::size_t removed = 0;
  for (int minute = 0; minute < 24 * 60; ++minute) {
    const std::vector<cluster::PlacementItem> before = fleet.cameras;
    const PlacementMinute news = day.next();
    EXPECT_FALSE(news.changed_nodes);
    ASSERT_EQ(news.removed.size(), before.size());
    ASSERT_EQ(fleet.cameras.size(), before.size());
    std::size_t left = 0;
    for (std::size_t i = 0; i < before.size(); ++i) {
      removed += news.removed[i] ? 1U : 0U;
      if (news.removed[i]) continue;
      ASSERT_EQ(fleet.cameras[left++].name, before[i].name);
    }
    for (; left < fleet.cameras.size(); ++left)
      ASSERT_TRUE(ever.insert(fleet.cameras[left].name).second) << "a new one has a new name";
  }
  EXPECT_NEAR(static_cast<double>(removed), 2500, 250);
  EXPECT_TRUE(std::is_sorted(fleet.cameras.begin(), fleet.cameras.end(),
                             [](const auto& a, const auto& b) { return a.name < b.name; }));
}

TEST(PlacementDay, NodesGoAndComeBackAndOneIsAlwaysThere) {
  const PlacementFleetOptions options{.cameras = 10, .nodes = 5, .seed = 3};
  PlacementFleet fleet = placement_fleet(options);
  PlacementDay day(fleet, options, {.departures = 40, .cameras = 0});
  int changes = 0, all = 0, drains = 0;
  for (int minute = 0; minute < 2000; ++minute) {
    const std::vector<cluster::PlacementNode> before = fleet.nodes;
    bool changed = false;
    const PlacementMinute news = day.next();
    for (std::size_t i = 0; i < before.size(); ++i) {
      changed = changed || before[i].state != fleet.nodes[i].state;
      drains += fleet.nodes[i].state == PlacementNodeState::draining ? 1 : 0;
    }
    EXPECT_EQ(news.changed_nodes, changed);
    EXPECT_GE(in_count(fleet), 1U);
    changes += changed ? 1 : 0;
    all += in_count(fleet) == 5 ? 1 : 0;
  }
  EXPECT_GT(changes, 100);
  EXPECT_GT(drains, 10);
  EXPECT_GT(all, 10) << "they come back";
}

TEST(PlacementControls, ModuloMovesNearlyAllAndFirstChoicesOnlyTheirOwn) {
  PlacementFleet fleet = placement_fleet({.cameras = 2000, .nodes = 20});
  const auto modulo = modulo_control();
  const auto rendezvous = rendezvous_control(fleet);
  modulo->start(fleet);
  rendezvous->start(fleet);
  const std::vector<std::size_t> first = rendezvous->nodes();
  fleet.nodes[4].state = PlacementNodeState::gone;
  EXPECT_GT(modulo->follow(fleet, changed_nodes()), 1800U);
  EXPECT_EQ(rendezvous->follow(fleet, changed_nodes()),
            static_cast<std::size_t>(std::count(first.begin(), first.end(), 4U)));
  for (const std::size_t node : rendezvous->nodes()) ASSERT_NE(node, 4U);
  fleet.nodes[4].state = PlacementNodeState::in;
  rendezvous->follow(fleet, changed_nodes());
  EXPECT_EQ(rendezvous->nodes(), first) << "each has its first choice again";
}

/// What is kept from minute to minute is what would be made anew.
TEST(PlacementControls, FollowTheDay) {
  const PlacementFleetOptions options{.cameras = 500, .nodes = 12, .mixed_weights = true, .seed = 5};
  PlacementFleet fleet = placement_fleet(options);
  const auto modulo = modulo_control();
  const auto rendezvous = rendezvous_control(fleet);
  modulo->start(fleet);
  rendezvous->start(fleet);
  PlacementDay day(fleet, options, {.departures = 20, .cameras = 2});
  for (int i = 0; i < 300; ++i) {
    const PlacementMinute minute = day.next();
    modulo->follow(fleet, minute);
    rendezvous->follow(fleet, minute);
    const auto modulo_anew = modulo_control();
    const auto rendezvous_anew = rendezvous_control(fleet);
    modulo_anew->start(fleet);
    rendezvous_anew->start(fleet);
    ASSERT_EQ(modulo->nodes(), modulo_anew->nodes()) << i;
    ASSERT_EQ(rendezvous->nodes(), rendezvous_anew->nodes()) << i;
  }
}

}  // namespace
}  // namespace vigil::bench
