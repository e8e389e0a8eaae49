// The metrics of a node of a fleet.
#include "actors/status/fleet_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::actors {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FleetSeriesTest : public ::testing::Test {
 protected:
  std::string page() const { return metrics_.text(); }

  Metrics metrics_;
  FleetSeries series_{metrics_};
};

TEST_F(FleetSeriesTest, TellsNothingGoodBeforeAnythingIsKnown) {
  for (const char* line :
       {"vigil_fleet_member 0\n", "vigil_fleet_planner 0\n", "vigil_fleet_registry_up 0\n",
        "vigil_fleet_nodes{state=\"ready\"} 0\n", "vigil_fleet_cameras{state=\"unplaced\"} 0\n",
        "vigil_fleet_registry_seconds_count 0\n"})
    EXPECT_THAT(page(), HasSubstr(line));
  EXPECT_THAT(page(), Not(HasSubstr("vigil_fleet_config_info{")));
  EXPECT_THAT(page(), Not(HasSubstr("vigil_link_up{")));
}

TEST_F(FleetSeriesTest, AProcessThatIsNoNodeHasNone) {
  EXPECT_THAT(Metrics().text(), Not(HasSubstr("vigil_fleet_")));
  EXPECT_THAT(Metrics().text(), Not(HasSubstr("vigil_link_")));
}

TEST_F(FleetSeriesTest, TellsWhatANodeIs) {
  series_.tell({.is_member = true,
                .is_planner = true,
                .registry_answers = true,
                .nodes = {{"ready", 4}, {"draining", 1}},
                .owned = 30,
                .handing_over = 2,
                .unplaced = 12,
                .degraded = 5,
                .refused = 3,
                .configuration = "1f"});
  for (const char* line :
       {"vigil_fleet_member 1\n", "vigil_fleet_planner 1\n", "vigil_fleet_registry_up 1\n",
        "vigil_fleet_nodes{state=\"ready\"} 4\n", "vigil_fleet_nodes{state=\"draining\"} 1\n",
        "vigil_fleet_nodes{state=\"joining\"} 0\n", "vigil_fleet_cameras{state=\"owned\"} 30\n",
        "vigil_fleet_cameras{state=\"handing_over\"} 2\n", "vigil_fleet_cameras{state=\"unplaced\"} 12\n",
        "vigil_fleet_cameras{state=\"degraded\"} 5\n", "vigil_fleet_cameras{state=\"refused\"} 3\n",
        "vigil_fleet_config_info{version=\"1f\"} 1\n"})
    EXPECT_THAT(page(), HasSubstr(line));
  series_.tell({.nodes = {{"ready", 3}}, .configuration = "2e"});
  for (const char* line :
       {"vigil_fleet_member 0\n", "vigil_fleet_planner 0\n", "vigil_fleet_registry_up 0\n",
        "vigil_fleet_nodes{state=\"draining\"} 0\n", "vigil_fleet_cameras{state=\"unplaced\"} 0\n",
        "vigil_fleet_config_info{version=\"2e\"} 1\n"})
    EXPECT_THAT(page(), HasSubstr(line));
  EXPECT_THAT(page(), Not(HasSubstr("version=\"1f\""))) << "it would count as a second configuration";
}

TEST_F(FleetSeriesTest, TimesTheRegistry) {
  series_.registry_answered(std::chrono::milliseconds(3));
  series_.registry_answered(std::chrono::milliseconds(700));
  for (const char* line :
       {"vigil_fleet_registry_seconds_bucket{le=\"0.0025\"} 0\n",
        "vigil_fleet_registry_seconds_bucket{le=\"0.005\"} 1\n",
        "vigil_fleet_registry_seconds_bucket{le=\"0.5\"} 1\n",
        "vigil_fleet_registry_seconds_bucket{le=\"1\"} 2\n", "vigil_fleet_registry_seconds_count 2\n"})
    EXPECT_THAT(page(), HasSubstr(line));
}

TEST_F(FleetSeriesTest, CountsWhatALinkCarriesAndHowItBreaks) {
  LinkFigures link{.is_up = true,
                   .outgoing = {.bytes = 100, .waiting_bytes = 40},
                   .incoming = {.bytes = 7, .resets = {{"checksum", 2}}},
                   .blocked = std::chrono::milliseconds(1500),
                   .dials = 4,
                   .failed_dials = {{"silence", 3}}};
  series_.links({{"n2", link}, {"n3", {}}});
  for (const char* line :
       {"vigil_link_up{node=\"n2\"} 1\n", "vigil_link_up{node=\"n3\"} 0\n",
        "vigil_link_bytes_total{direction=\"outgoing\",node=\"n2\"} 100\n",
        "vigil_link_bytes_total{direction=\"incoming\",node=\"n2\"} 7\n",
        "vigil_link_waiting_bytes{direction=\"outgoing\",node=\"n2\"} 40\n",
        "vigil_link_resets_total{direction=\"incoming\",node=\"n2\",reason=\"checksum\"} 2\n",
        "vigil_link_blocked_seconds_total{node=\"n2\"} 1.5\n", "vigil_link_dials_total{node=\"n2\"} 4\n",
        "vigil_link_failed_dials_total{node=\"n2\",reason=\"silence\"} 3\n",
        "vigil_link_failed_dials_total{node=\"n3\",reason=\"connection\"} 0\n",
        "vigil_link_resets_total{direction=\"outgoing\",node=\"n3\",reason=\"silence\"} 0\n"})
    EXPECT_THAT(page(), HasSubstr(line));
  link.is_up = false;
  link.outgoing = {.bytes = 150, .resets = {{"silence", 1}}};
  link.failed_dials["silence"] = 4;
  series_.links({{"n2", link}, {"n3", {}}});
  for (const char* line :
       {"vigil_link_up{node=\"n2\"} 0\n", "vigil_link_bytes_total{direction=\"outgoing\",node=\"n2\"} 150\n",
        "vigil_link_waiting_bytes{direction=\"outgoing\",node=\"n2\"} 0\n",
        "vigil_link_failed_dials_total{node=\"n2\",reason=\"silence\"} 4\n",
        "vigil_link_resets_total{direction=\"outgoing\",node=\"n2\",reason=\"silence\"} 1\n"})
    EXPECT_THAT(page(), HasSubstr(line));
}

TEST_F(FleetSeriesTest, ACountThatBeginsAnewGoesOn) {
  series_.links({{"n2", {.is_up = true, .outgoing = {.bytes = 100}, .incoming = {}}}});
  // The peer was off the list for a moment, and is counted from 0.
  series_.links({{"n2", {.is_up = true, .outgoing = {.bytes = 30}, .incoming = {}}}});
  EXPECT_THAT(page(), HasSubstr("vigil_link_bytes_total{direction=\"outgoing\",node=\"n2\"} 130\n"));
}

TEST_F(FleetSeriesTest, NothingIsLeftOfANodeThatIsGone) {
  const std::string before = page();
  series_.links({{"n2",
                  {.is_up = true,
                   .outgoing = {.bytes = 100, .resets = {{"limits", 1}}},
                   .incoming = {},
                   .dials = 2,
                   .failed_dials = {{"silence", 1}}}}});
  series_.links({});
  EXPECT_EQ(page(), before);
}

}  // namespace
}  // namespace vigil::actors
