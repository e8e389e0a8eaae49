// What people ask of a fleet, as strangers may write it, and what nodes tell each other for the answer.
#include "fleet/messages/fleet_query.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fleet/status/node_answer.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

FleetQuery query_of(const std::string& text) {
  const auto query = parse_fleet_query(text);
  if (const auto* fault = std::get_if<std::string>(&query)) ADD_FAILURE() << text << ": " << *fault;
  return std::holds_alternative<FleetQuery>(query) ? std::get<FleetQuery>(query) : FleetQuery();
}

TEST(FleetQuery, IsReadBackAsItIsWritten) {
  for (const FleetQuery& query :
       {FleetQuery(), FleetQuery{.cameras = true},
        FleetQuery{.cameras = true, .after = "gate-7_a.b", .limit = 1}, FleetQuery{.camera = "gate"}})
    EXPECT_EQ(query_of(print(query)), query) << print(query);
  EXPECT_TRUE(query_of("cameras=1").cameras);
  EXPECT_EQ(query_of("&&cameras&limit=1000&").limit, 1000U);
}

TEST(FleetQuery, WhatMakesNoSenseIsRefusedWithoutRepeatingIt) {
  for (const std::string text :
       {"camera=", "camera", "camera=../etc", "camera=a%20b", "camera=a/b", "cameras=0", "cameras=yes",
        "limit=5x&cameras", "limit=0&cameras", "limit=1001&cameras", "limit=-1&cameras", "limit&cameras",
        "limit=99999999999999999999&cameras", "after=a", "after=-&cameras", "camera=a&cameras", "what=ever",
        "=", "camera=\x1b[2J"}) {
    const auto query = parse_fleet_query(text);
    const auto* const fault = std::get_if<std::string>(&query);
    ASSERT_NE(fault, nullptr) << text;
    EXPECT_EQ(fault->find('\x1b'), std::string::npos);
    EXPECT_EQ(fault->find('\n'), std::string::npos);
  }
  EXPECT_TRUE(std::holds_alternative<std::string>(parse_fleet_query("camera=" + std::string(129, 'a'))));
}

TEST(NodeAnswer, IsReadBackAsItIsWritten) {
  NodeAnswer answer;
  EXPECT_EQ(parse_node_answer(print(answer)), answer);
  answer.membership = "member";
  answer.lease_left = 1234ms;
  answer.registry_answers = answer.is_ready = true;
  answer.registry_remark = "it was set back";
  answer.gateway = "no space left on device";
  answer.states = {{"up", 3}, {"unknown", 1}};
  answer.cameras["gate"] = {"down", "refused", 5s};
  answer.unplaced = 7;
  answer.why_unplaced["attic"] = "no capacity";
  cluster::PlannedCamera entry;
  entry.fence = 5;
  entry.stream = "gpu";
  answer.plan = cluster::NodePlan{.fence = 5, .cameras = {{"gate", entry}}, .incarnation = "1"};
  EXPECT_EQ(parse_node_answer(print(answer)), answer);
  const NodeQuestion question{{"gate", "yard"}, true};
  EXPECT_EQ(parse_question(print(question)), question);
}

TEST(NodeAnswer, WhatIsNoneIsRefusedInOneLine) {
  const std::string good = print(NodeAnswer());
  for (std::string text :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(0, good.size() - 1),
        std::string(R"({"membership": 5})"), std::string(1000, '[')}) {
    try {
      parse_node_answer(text);
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_THAT(error.what(), HasSubstr("no answer of a node: "));
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
  }
  EXPECT_THROW(parse_question("{}"), std::runtime_error);
  EXPECT_THROW(parse_question(print(NodeQuestion{std::vector<std::string>(1001, "a")})), std::runtime_error);
}

}  // namespace
}  // namespace vigil::fleet
