// What a node tells of itself to its metrics, its page and its probes; over a registry in memory.
#include "fleet/status/node_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/registry/memory_registry.h"
#include "tests/cluster/virtual_loop.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using cluster::BulkCounters;
using cluster::BulkEnd;
using cluster::Membership;
using cluster::NodeRole;
using cluster::testing::VirtualLoop;
using cluster::testing::VirtualTime;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class NodeReportTest : public ::testing::Test {
 protected:
  static cluster::NodeRecord record() {
    cluster::NodeRecord record;
    record.name = "c1";
    record.incarnation = "1";
    record.roles = {NodeRole::camera, NodeRole::gateway};
    record.state = cluster::NodeState::ready;
    record.control = record.bulk = {"c1", 7400};
    record.config = "1f";
    return record;
  }
  void run(base::Duration time) {
    for (base::Duration done{0}; done < time; done += 50ms) {
      time_.advance(50ms);
      store_->expire();
      registry_.expire();
      report_.tell(member_, plan_);
    }
  }
  std::string page() const { return metrics_.text(); }

  VirtualTime time_;
  std::shared_ptr<cluster::MemoryStore> store_ = std::make_shared<cluster::MemoryStore>(time_);
  /// What was asked of it meanwhile is answered within a second, and asked again within another.
  bool cut_ = true;
  VirtualLoop loop_{time_};
  cluster::MemoryRegistry registry_{store_,
                                    time_,
                                    {.post =
                                         [this](auto, std::function<void()> step) {
                                           if (!cut_) time_.at(2ms, std::move(step));
                                         },
                                     .time_limit = 1000ms}};
  cluster::FleetMember member_{registry_, loop_, time_, {.fleet = "city", .record = record(), .ttl = 3000ms}};
  cluster::PlanKeeper plan_{registry_, loop_, time_, member_, {}};
  actors::Metrics metrics_;
  actors::FleetSeries series_{metrics_};
  actors::StatusBoard board_{time_};
  NodeReport report_{board_, &series_, {.fleet = "city"}};
};

TEST_F(NodeReportTest, IsNotReadyBeforeItHasReachedTheRegistry) {
  board_.phase(actors::RunPhase::running);
  run(5s);
  board_.beat();
  EXPECT_FALSE(board_.ready());
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_registry_up 0\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_member 0\n"));
  cut_ = false;
  run(3s);
  EXPECT_TRUE(board_.ready());
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_registry_up 1\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_member 1\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_nodes{state=\"ready\"} 1\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_config_info{version=\"1f\"} 1\n"));
}

TEST_F(NodeReportTest, StaysReadyWithoutTheRegistryAndSaysSo) {
  cut_ = false;
  board_.phase(actors::RunPhase::running);
  run(4s);
  ASSERT_TRUE(board_.ready());
  cut_ = true;
  for (int i = 0; i < 80; ++i) {
    run(100ms);
    board_.beat();
    ASSERT_TRUE(board_.ready()) << "nor is it out of sight for a moment";
  }
  EXPECT_EQ(member_.state(), Membership::cut_off);
  EXPECT_TRUE(board_.ready()) << "all nodes would not be, and everything goes on";
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_member 0\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_registry_up 0\n"));
  const actors::FleetStanding standing = standing_of("city", member_);
  EXPECT_EQ(standing.membership, "cut off");
  EXPECT_THAT(standing.roles, ElementsAre("camera", "gateway"));
}

TEST_F(NodeReportTest, IsNotReadyWhileItWaitsForTheConfigurationNorWhileItEnds) {
  const auto is_ready_as = [&](cluster::NodeState state) {
    member_.alter([state](cluster::NodeRecord& changed) { changed.state = state; });
    run(100ms);
    board_.beat();
    return board_.ready();
  };
  cut_ = false;
  board_.phase(actors::RunPhase::running);
  run(4s);
  EXPECT_FALSE(is_ready_as(cluster::NodeState::joining));
  EXPECT_TRUE(is_ready_as(cluster::NodeState::ready));
  EXPECT_FALSE(is_ready_as(cluster::NodeState::draining));
  EXPECT_EQ(member_.state(), Membership::member);
}

TEST_F(NodeReportTest, ThatItPlansIsTold) {
  cut_ = false;
  run(4s);
  member_.stand_for_planner(true);
  plan_.want({{"gate", 1, 1}, {"yard", 1, 1}});
  run(1s);
  plan_.step();
  run(2s);
  EXPECT_EQ(standing_of("city", member_).planner, "c1");
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_planner 1\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_cameras{state=\"owned\"} 2\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_cameras{state=\"unplaced\"} 2\n")) << "nobody computes them";
  member_.stand_for_planner(false);
  run(1s);
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_planner 0\n"));
  EXPECT_THAT(page(), HasSubstr("vigil_fleet_cameras{state=\"unplaced\"} 0\n")) << "another one knows";
}

TEST_F(NodeReportTest, ANodeThatHangsIsNotAlive) {
  cut_ = false;
  board_.phase(actors::RunPhase::running);
  run(1s);
  time_.advance(9s);
  board_.beat();
  EXPECT_TRUE(board_.live());
  time_.advance(2s);
  EXPECT_FALSE(board_.live());
  EXPECT_THAT(board_.late(), ElementsAre("node"));
  report_.end();
  EXPECT_THAT(board_.late(), ElementsAre()) << "one that ends need not say anything";
}

TEST_F(NodeReportTest, WhoReadsNoCamerasHasStartedWhenADeviceIsUpAndItIsAMember) {
  NodeReport computes(board_, nullptr, {.fleet = "city", .tells_phase = true});
  board_.device("cpu", actors::DeviceState::restarting, "it starts");
  cut_ = false;
  run(4s);
  computes.tell(member_, plan_);
  EXPECT_FALSE(board_.started());
  board_.device("cpu", actors::DeviceState::up, "");
  computes.tell(member_, plan_);
  EXPECT_TRUE(board_.started() && board_.ready());
  time_.advance(9s);
  computes.tell(member_, plan_);
  time_.advance(9s);
  EXPECT_TRUE(board_.live()) << "there is no supervisor that could be late";
  member_.alter([](cluster::NodeRecord& changed) { changed.state = cluster::NodeState::draining; });
  computes.tell(member_, plan_);
  EXPECT_FALSE(board_.ready());
}

TEST(LinksOf, AreDownToNodesThatAreNotKnownAndWhileOneDirectionIs) {
  BulkCounters both;
  both.outgoing = {.open = true, .messages = 1, .bytes = 100, .waiting_messages = 1, .waiting_bytes = 40};
  both.outgoing.resets[static_cast<std::size_t>(BulkEnd::silence)] = 3;
  both.incoming = {.open = true, .messages = 1, .bytes = 7};
  both.blocked = 2s;
  both.dials = 5;
  both.failed_dials[static_cast<std::size_t>(BulkEnd::refused)] = 4;
  BulkCounters half = both;
  half.incoming.open = false;
  const std::map<std::string, cluster::NodeRecord> nodes{
      {"c1", {}}, {"c2", {}}, {"c3", {}}, {"c4", {}}, {"c5", {}}};
  const auto deals_with = [](const std::string& node) { return node != "c1" && node != "c5"; };
  const auto links = links_of(nodes, deals_with, {{"c2", both}, {"c3", half}, {"gone", both}});
  ASSERT_EQ(links.size(), 3U);
  EXPECT_TRUE(links.at("c2").is_up);
  EXPECT_EQ(links.at("c2").outgoing.bytes, 100U);
  EXPECT_EQ(links.at("c2").outgoing.waiting_bytes, 40U);
  EXPECT_EQ(links.at("c2").outgoing.resets, (std::map<std::string, std::uint64_t>{{"silence", 3}}));
  EXPECT_EQ(links.at("c2").incoming.bytes, 7U);
  EXPECT_EQ(links.at("c2").blocked, 2s);
  EXPECT_EQ(links.at("c2").dials, 5U);
  EXPECT_EQ(links.at("c2").failed_dials, (std::map<std::string, std::uint64_t>{{"refused", 4}}));
  EXPECT_FALSE(links.at("c3").is_up);
  EXPECT_FALSE(links.at("c4").is_up) << "it is there, and not known";
}

}  // namespace
}  // namespace vigil::fleet
