// A small city: what must hold whatever its size.
#include "bench/city.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/city_measured.h"
#include "cluster/process/clock.h"

namespace vigil::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::IsEmpty;

CityOptions small() {
  return {.cameras = 300,
          .nodes = 16,
          .gateways = 2,
          .alerts = 1,
          .churn = 20,
          .upgrades_at_once = 2,
          .upgrades = 5,
          .steady = 2min};
}

std::map<std::string, CityPhase> phases_of(City& city) {
  std::map<std::string, CityPhase> phases;
  city.run([&](const CityPhase& phase) { phases[phase.name] = phase; });
  return phases;
}

std::string text_of(const std::map<std::string, CityPhase>& phases) {
  std::string text;
  for (const auto& [name, phase] : phases)
    for (const auto& figure : phase.figures)
      text += name + ' ' + figure.name + ' ' + std::to_string(figure.value) + '\n';
  return text;
}

TEST(City, EveryCameraIsWatchedWhateverHappens) {
  City city(small());
  const auto phases = phases_of(city);
  EXPECT_THAT(city.faults(), IsEmpty());
  const auto at = [&](const char* phase, const char* figure) { return phases.at(phase).at(figure); };

  for (const auto& [name, phase] : phases) {
    EXPECT_EQ(phase.at("unwatched_at_end"), 0) << name;
    // Those that start first have all, and streams go to the others in waves of a window's length.
    EXPECT_LT(phase.at("settled_in"), name == "start" ? 300 : 120) << name;
  }
  // A lease of 5 s, what etcd takes to see that it is over, and a planning.
  for (const char* phase : {"node_lost", "computing_node_lost", "power_cut"})
    EXPECT_LT(at(phase, "longest_unowned"), 7) << phase;
  EXPECT_GT(at("node_lost", "longest_unowned"), 2) << "nobody knows at once";
  EXPECT_LT(at("node_lost", "longest_unwatched"), 10);
  EXPECT_LT(at("computing_node_lost", "longest_unwatched"), 8);
  // The planner's cameras wait for the next planner.
  EXPECT_LT(at("planner_lost", "longest_unowned"), 8);
  EXPECT_LT(at("planner_lost", "longest_unwatched"), 11);
  // Nothing moves without etcd's leader or one of its servers, nor for want of a gateway, nor in an orderly
  // upgrade.
  EXPECT_EQ(at("etcd_leader_lost", "longest_unwatched"), 0);
  EXPECT_EQ(at("etcd_server_lost", "longest_unwatched"), 0);
  EXPECT_EQ(at("gateway_lost", "longest_unwatched"), 0);
  EXPECT_EQ(at("upgrade", "longest_unowned"), 0);
  EXPECT_EQ(at("upgrade", "longest_unwatched"), 0) << "a stream that moves is answered where it was";
  // Cameras that come back are found by pauses of 30 s at most.
  EXPECT_LT(at("power_back", "longest_unwatched"), 45);
}

TEST(City, NothingIsBeyondItsLimits) {
  City city(small());
  const auto phases = phases_of(city);
  for (const auto& [name, phase] : phases) {
    for (const auto& figure : phase.figures) {
      if (figure.capacity == 0) continue;
      EXPECT_LT(figure.value, figure.capacity) << name << ' ' << figure.name;
    }
    // Three watches of each node, and the planner's two.
    EXPECT_LE(phase.at("etcd_watchers"), 3 * 16 + 2 + 3 * 2) << name;
    // Not each with each: those that read cameras with the 8 that compute, and all with the gateways; and of
    // those that compute each tries three before it knows one that reads.
    EXPECT_LE(phase.at("links"), 6 * 8 + 2 * 15 + 3 * 8) << name;
  }
  // When nothing happens, etcd has cameras that come and go, and leases, and no more.
  const CityPhase& steady = phases.at("steady");
  EXPECT_LE(steady.at("etcd_keep_alives_peak"), 16);
  EXPECT_GT(steady.at("etcd_writes"), 0) << "20 times all cameras in a day are some in a minute";
  EXPECT_LT(steady.at("etcd_writes"), 60);
  EXPECT_EQ(steady.at("greetings"), 0);
  EXPECT_GT(steady.at("gateway_events_peak"), 5);
}

TEST(City, WatchesThatBreakWithTheirConnectionsGoOnElsewhere) {
  City city(small());
  const auto phases = phases_of(city);
  const auto at = [&](const char* phase, const char* figure) { return phases.at(phase).at(figure); };
  EXPECT_EQ(at("start", "etcd_connections"), 16) << "one of each node";
  EXPECT_EQ(at("steady", "etcd_connections"), 0);
  EXPECT_GE(at("etcd_leader_lost", "etcd_connections"), 2 * 16)
      << "each tries in vain before there is another";
  EXPECT_GE(at("etcd_server_lost", "etcd_connections"), 3) << "those of one of three";
  EXPECT_LE(at("etcd_server_lost", "etcd_connections"), 9);
  for (const char* phase : {"etcd_leader_lost", "etcd_server_lost"})
    EXPECT_EQ(at(phase, "etcd_watchers_at_end"), at("steady", "etcd_watchers_at_end")) << phase;

  CityOptions options = small();
  options.costs.etcd_servers = 2;
  City of_two(options);
  EXPECT_FALSE(phases_of(of_two).contains("etcd_server_lost")) << "one of two is no quorum";
}

TEST(City, AnUpgradeWaitsForWindowsToFill) {
  CityOptions options = small();
  City slow(options);
  options.window = 1s;
  City quick(options);
  const double of_40_s = phases_of(slow).at("upgrade").at("took");
  EXPECT_GT(of_40_s, phases_of(quick).at("upgrade").at("took") + 30);
}

TEST(City, PagesAreWholeAsLongAsAllAnswer) {
  City city(small());
  const auto phases = phases_of(city);
  const auto at = [&](const char* phase, const char* figure) { return phases.at(phase).at(figure); };
  EXPECT_NEAR(at("steady", "pages"), 2 * at("steady", "took"), 4) << "one a second at each of two gateways";
  EXPECT_EQ(at("steady", "pages_incomplete"), 0);
  EXPECT_LT(at("steady", "page_longest"), 0.5);
  EXPECT_GT(at("steady", "etcd_read_bytes_peak"), 0) << "the plans are read for each";
  EXPECT_GT(at("node_lost", "pages_incomplete"), 0) << "a node that is gone does not answer";
  EXPECT_GE(at("node_lost", "page_longest"), 2) << "and is waited for";
  EXPECT_LT(at("node_lost", "page_longest"), 2.5);
  EXPECT_GT(at("etcd_leader_lost", "pages_incomplete"), 0);

  CityOptions without = small();
  without.pages = 0;
  City quiet(without);
  EXPECT_EQ(phases_of(quiet).at("steady").at("pages"), 0);
}

TEST(City, IsTheSameForTheSameSeed) {
  CityOptions options = small();
  options.cameras = 100;
  options.nodes = 10;
  City first(options);
  City second(options);
  const std::string text = text_of(phases_of(first));
  EXPECT_EQ(text, text_of(phases_of(second)));
  options.seed = 2;
  City other(options);
  EXPECT_NE(text, text_of(phases_of(other)));
}

TEST(City, CamerasThatCannotBePlacedAreFaults) {
  CityOptions options = small();
  options.cameras = 2100;
  options.nodes = 4;
  options.gateways = 1;
  options.camera_nodes = 0.34;
  options.upgrades = 0;
  options.steady = 1s;
  options.patience = 20s;
  City city(options);
  phases_of(city);
  EXPECT_THAT(city.faults(), Not(IsEmpty())) << "one node has room for 2,000";
}

TEST(CityMeasured, TellsWhatThisMachineTakes) {
  const CityPhase measured = measured_city_costs(small(), cluster::SystemClock());
  EXPECT_GT(measured.at("record_bytes"), 300);
  EXPECT_GT(measured.at("plan_all"), 0);
  EXPECT_GT(measured.at("parse_record"), 0);
  EXPECT_GT(measured.at("plans_bytes"), 300 * 100);
  EXPECT_GT(measured.at("index_camera"), 0);
  EXPECT_GT(measured.at("parse_answer"), 0);
  EXPECT_GT(measured.at("page_bytes"), 16 * 300) << "each of its nodes is on it";
}

}  // namespace
}  // namespace vigil::bench
