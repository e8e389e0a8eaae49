// What people are shown of a fleet: counts, pages, one camera and why it is where it is.
#include "fleet/status/fleet_picture.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "fleet/status/fleet_text.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

cluster::PlannedCamera planned(cluster::Fence fence) {
  cluster::PlannedCamera entry;
  entry.fence = fence;
  return entry;
}

std::string schema_faults(const json& page) {
  static const valijson::Schema* const compiled = [] {
    std::ifstream file(VIGIL_SOURCE_DIR "/docs/fleet.schema.json");
    static const json schema = json::parse(file);
    auto* made = new valijson::Schema();
    valijson::SchemaParser().populateSchema(valijson::adapters::NlohmannJsonAdapter(schema), *made);
    return made;
  }();
  valijson::ValidationResults results;
  valijson::Validator().validate(*compiled, valijson::adapters::NlohmannJsonAdapter(page), &results);
  std::string text;
  for (valijson::ValidationResults::Error error; results.popError(error);) text += error.description + '\n';
  return text;
}

/// c1 and c2 read cameras, gpu computes; c1 plans.
class FleetPictureTest : public ::testing::Test {
 protected:
  FleetPictureTest() {
    using cluster::NodeRole;
    standing_.fleet = "city";
    standing_.planner = "c1";
    standing_.registry_answers = true;
    node("c1", {NodeRole::camera});
    node("c2", {NodeRole::camera});
    node("gpu", {NodeRole::vision, NodeRole::stream, NodeRole::generate});
    standing_.record = standing_.nodes.at("c1");
    standing_.nodes.at("c1").cameras = 40;
    said_["c1"].answer->unplaced = 1;
    give("c1", "gate", 3, "gpu");
    give("c2", "yard", 4, "gpu");
    standing_.wanted = {"attic", "gate", "yard"};
    state("c1", "gate", "up", "", 32s);
    state("c2", "yard", "down", "Connection refused", 90s);
    said_["c1"].answer->why_unplaced["attic"] = "no capacity";
  }

  void node(const std::string& name, std::set<cluster::NodeRole> roles) {
    cluster::NodeRecord record;
    record.name = name;
    record.incarnation = "1";
    record.roles = std::move(roles);
    record.state = cluster::NodeState::ready;
    record.control = {name, 7400};
    record.version = "0.9";
    standing_.nodes[name] = record;
    NodeAnswer answer;
    answer.membership = "member";
    answer.registry_answers = true;
    answer.is_ready = true;
    answer.lease_left = 2500ms;
    said_[name] = {answer, "", 0ms};
  }
  void give(const std::string& node, const std::string& camera, cluster::Fence fence,
            const std::string& stream) {
    cluster::PlannedCamera entry;
    entry.fence = fence;
    entry.stream = entry.vision = entry.generate = stream;
    entry.why = "first choice";
    if (!stream.empty()) entry.why_stream = "its node old is gone; second choice: big is full";
    plan_[node].cameras[camera] = entry;
  }
  void state(const std::string& node, const std::string& camera, const std::string& state,
             const std::string& reason, base::Duration age) {
    said_[node].answer->cameras[camera] = {state, reason, age};
    ++said_[node].answer->states[state];
  }
  void silence(const std::string& node) { said_[node] = {std::nullopt, "it did not answer within 2s", 7s}; }

  FleetPicture picture() const {
    return {.standing = std::make_shared<NodeStanding>(standing_),
            .plan = std::make_shared<PlanIndex>(std::make_shared<cluster::FleetPlan>(plan_)),
            .plan_age = plan_age_,
            .registry_fault = registry_fault_,
            .nodes = said_};
  }
  /// As it is told, having looked whether it is as the schema says.
  json page(const FleetQuery& query = {}) const {
    const FleetPicture now = picture();
    const std::string text = print(now, query, page_of(query, *now.plan, standing_.wanted));
    const json told = json::parse(text);
    EXPECT_EQ(schema_faults(told), "") << told.dump(1);
    text_ = fleet_text(text).value_or("no text");
    return told;
  }
  std::vector<std::string> explained(const std::string& camera) const {
    return page({.camera = camera}).at("list").at(0).at("explanation");
  }

  NodeStanding standing_;
  cluster::FleetPlan plan_;
  std::map<std::string, FleetPicture::Node> said_;
  std::optional<base::Duration> plan_age_ = 0ms;
  std::string registry_fault_;
  mutable std::string text_;
};

TEST_F(FleetPictureTest, ByDefaultCamerasAreCountedAndNotListed) {
  const json told = page();
  EXPECT_EQ(told.at("cameras"), json::parse(R"({"wanted": 3, "planned": 2, "unplaced": 1, "without_stream": 0,
      "handing_over": 0, "rungs": {"full": 2},
      "states": {"connecting": 0, "up": 1, "stalled": 0, "down": 1, "unknown": 0, "unplaced": 1}})"));
  EXPECT_FALSE(told.contains("list"));
  EXPECT_EQ(told.at("nodes").size(), 3U);
  EXPECT_EQ(told.at("nodes")[0].at("lease_seconds"), 2.5);
  EXPECT_EQ(told.at("nodes")[2].at("streams"), 2);
  EXPECT_THAT(text_, HasSubstr("fleet city, as node c1 sees it; node c1 plans\n"));
  EXPECT_THAT(text_, HasSubstr("c1    ready  camera                  1/40"));
  EXPECT_THAT(text_, HasSubstr("cameras   3: 1 down, 1 unplaced, 1 up\n"));
}

TEST_F(FleetPictureTest, WhatHoldsAConfigurationUpIsTold) {
  page();
  EXPECT_THAT(text_, HasSubstr("node c1 plans\n\nNODE")) << "there is nothing to say";
  const std::string hash = "3fa97d1c2b5e" + std::string(52, '0');
  standing_.configuration = {.hash = hash, .version = 7, .before = {}};
  standing_.configuration_waits = {"configuration 4fb0 is not applied: not read by c2"};
  standing_.nodes.at("c1").config = hash;
  standing_.nodes.at("c1").config_version = 7;
  const json told = page();
  EXPECT_EQ(told.at("configuration"),
            json({{"runs", hash}, {"version", 7}, {"waits", standing_.configuration_waits}}));
  EXPECT_EQ(told.at("nodes")[0].at("configuration").at("version"), 7);
  EXPECT_EQ(told.at("nodes")[1].at("configuration").at("version"), 0);
  EXPECT_THAT(text_, HasSubstr("configuration 4fb0 is not applied: not read by c2\n"));
  EXPECT_THAT(text_, HasSubstr(" 7 (3fa97d1c2b5e)"));
}

TEST_F(FleetPictureTest, ANodeThatWaitsForTheFleetsConfigurationSaysSo) {
  const std::string hash = "3fa97d1c2b5e" + std::string(52, '0');
  cluster::NodeRecord& record = standing_.nodes.at("c2");
  record.state = cluster::NodeState::joining;
  said_["c2"].answer->is_ready = false;
  page();
  EXPECT_THAT(text_, HasSubstr("not ready: the fleet has no configuration yet\n"));
  standing_.configuration = {.hash = hash, .version = 7, .before = {}};
  record.config_seen = "4fb000000000" + std::string(52, '0');
  page();
  EXPECT_THAT(text_, HasSubstr("not ready: it has read the configuration 4fb000000000, and the fleet runs by "
                               "3fa97d1c2b5e (vigil config status)\n"));
  record.config_fault = "rules: is nothing";
  page();
  EXPECT_THAT(text_, HasSubstr("(vigil config status); cannot take the configuration: rules: is nothing\n"));
  record.config_fault.clear();
  record.config_seen = hash;
  page();
  EXPECT_THAT(text_, HasSubstr("not ready: it does not run by the fleet's configuration yet\n"));
  record.state = cluster::NodeState::ready;
  page();
  EXPECT_THAT(text_, HasSubstr("not ready\n")) << "for another reason";
}

TEST_F(FleetPictureTest, ListsArePagesByName) {
  json told = page({.cameras = true, .limit = 2});
  ASSERT_EQ(told.at("list").size(), 2U);
  EXPECT_EQ(told.at("list")[0].at("camera"), "attic");
  EXPECT_EQ(told.at("list")[0].at("state"), "unplaced");
  EXPECT_EQ(told.at("list")[0].at("why_unplaced"), "no capacity");
  EXPECT_EQ(told.at("list")[1].at("owner"), "c1");
  EXPECT_EQ(told.at("list")[1].at("fence"), 3);
  EXPECT_EQ(told.at("list")[1].at("since_seconds"), 32);
  EXPECT_EQ(told.at("next"), "gate");
  EXPECT_THAT(text_, HasSubstr("there are more: go on with --after gate\n"));
  told = page({.cameras = true, .after = "gate", .limit = 2});
  ASSERT_EQ(told.at("list").size(), 1U);
  EXPECT_EQ(told.at("list")[0].at("camera"), "yard");
  EXPECT_EQ(told.at("list")[0].at("reason"), "Connection refused");
  EXPECT_EQ(told.at("next"), nullptr);
  EXPECT_THAT(text_, HasSubstr("yard    c2    gpu     4      down   2 min"));
  EXPECT_EQ(page({.cameras = true, .after = "zoo"}).at("list").size(), 0U);
}

TEST_F(FleetPictureTest, ACameraIsExplained) {
  EXPECT_THAT(explained("gate"),
              ElementsAre("Node c1 was given gate, with the fence 3: first choice.",
                          "Node gpu computes its windows: its node old is gone; second choice: big is full.",
                          "Node c1 says that it is up, since 32 s."));
  EXPECT_THAT(text_, HasSubstr("Node c1 says that it is up, since 32 s.\n"));
  EXPECT_THAT(explained("yard"), Contains("Node c2 says that it is down, since 2 min: Connection refused."));
  EXPECT_THAT(explained("attic"), ElementsAre("No node has attic, so that it is not watched: no capacity."));
}

TEST_F(FleetPictureTest, WhyThereIsLessOfACameraIsTold) {
  cluster::PlannedCamera& gate = plan_["c1"].cameras["gate"];
  gate.rung = "fewer frames";
  gate.why_rung = "fewer frames: the fleet has room for 4 of 5";
  EXPECT_THAT(explained("gate"),
              Contains("There is less of it than its settings say: fewer frames: the fleet has "
                       "room for 4 of 5."));
  const json told = page({.camera = "gate"});
  EXPECT_EQ(told.at("list")[0].at("rung"), "fewer frames");
  EXPECT_EQ(told.at("list")[0].at("why_rung"), gate.why_rung);
  EXPECT_EQ(told.at("cameras").at("rungs"), json::parse(R"({"full": 1, "fewer frames": 1})"));
  page({.cameras = true});
  EXPECT_THAT(text_, HasSubstr("fewer frames: the fleet has room for 4 of 5"));
  EXPECT_THAT(explained("yard"), Not(Contains(HasSubstr("less of it"))));
}

TEST_F(FleetPictureTest, ACameraThatNobodyKnowsIsNotMadeUp) {
  EXPECT_FALSE(knows(picture(), "zoo"));
  EXPECT_TRUE(knows(picture(), "attic"));
  const json zoo = page({.camera = "zoo"}).at("list")[0];
  EXPECT_EQ(zoo.at("state"), "unknown");
  EXPECT_EQ(zoo.at("reason"), "");
  EXPECT_EQ(zoo.at("why_unplaced"), "");
  EXPECT_THAT(
      explained("zoo"),
      ElementsAre("No node has zoo, and the configuration of node c1 does not have it either, or does not "
                  "enable it."));
}

TEST_F(FleetPictureTest, OfTwoNodesThatHaveItTheHigherFenceOwnsIt) {
  give("c2", "gate", 9, "gpu");
  plan_["c1"].cameras["gate"].hand_to = "c2";
  const json told = page({.camera = "gate"});
  EXPECT_EQ(told.at("list")[0].at("owner"), "c2");
  EXPECT_EQ(told.at("list")[0].at("former"), "c1");
  EXPECT_EQ(told.at("list")[0].at("fence"), 9);
  EXPECT_EQ(told.at("list")[0].at("state"), "unknown") << "c2 has not begun with it";
  EXPECT_EQ(told.at("cameras").at("handing_over"), 1);
  EXPECT_EQ(told.at("cameras").at("planned"), 2);
  EXPECT_THAT(explained("gate"), Contains("Node c1 goes on with it until c2 has frames of it."));
}

TEST_F(FleetPictureTest, ANodeThatDoesNotAnswerIsNamedAndItsCamerasAreUnknown) {
  silence("c2");
  const json told = page({.cameras = true});
  const json& node = told.at("nodes")[1];
  EXPECT_EQ(node.at("answers"), false);
  EXPECT_EQ(node.at("fault"), "it did not answer within 2s");
  EXPECT_EQ(node.at("lease_seconds"), nullptr);
  EXPECT_EQ(node.at("heard_seconds"), 7);
  EXPECT_EQ(told.at("nodes_silent"), 1);
  EXPECT_EQ(told.at("cameras").at("states").at("unknown"), 1);
  EXPECT_EQ(told.at("list")[2].at("state"), "unknown");
  EXPECT_EQ(told.at("list")[2].at("reason"), "its node c2 does not answer");
  EXPECT_THAT(text_, HasSubstr("it did not answer within 2s\n"));
  EXPECT_THAT(explained("yard"), Contains("Whether it delivers is not known: it did not answer within 2s."));
}

TEST_F(FleetPictureTest, AGatewayThatDoesNotServeSaysWhy) {
  node("g1", {cluster::NodeRole::gateway});
  standing_.nodes.at("g1").serves = true;
  EXPECT_EQ(page().at("nodes")[2].at("serves"), true);
  EXPECT_EQ(page().at("nodes")[0].at("serves"), nullptr) << "it is none";
  EXPECT_THAT(text_, ::testing::Not(HasSubstr("gateway does not serve")));
  standing_.nodes.at("g1").serves = false;
  said_["g1"].answer->gateway = "no space left on device";
  EXPECT_EQ(page().at("nodes")[2].at("gateway"), "no space left on device");
  EXPECT_THAT(text_, HasSubstr("its gateway does not serve: no space left on device\n"));
  said_["g1"].answer->gateway = "";
  page();
  EXPECT_THAT(text_, HasSubstr("its gateway does not serve\n")) << "a build that does not say why";
  silence("g1");
  EXPECT_EQ(page().at("nodes")[2].at("gateway"), nullptr);
  EXPECT_THAT(text_, HasSubstr("it did not answer within 2s; its gateway does not serve\n"));
}

TEST_F(FleetPictureTest, WhomItDoesNotReachAndWhoseClockIsApartIsTold) {
  standing_.nodes.at("c2").unreachable = {"gpu", "gpu2"};
  standing_.nodes.at("gpu").apart = true;
  standing_.nodes.at("c1").clock_off = true;
  const json told = page();
  EXPECT_EQ(told.at("nodes")[1].at("unreachable"), json({"gpu", "gpu2"}));
  EXPECT_THAT(text_, HasSubstr("no way to gpu,gpu2\n"));
  EXPECT_THAT(text_, HasSubstr("no way to or from any node with which it deals: given nothing\n"));
  EXPECT_THAT(text_, HasSubstr("its clock is apart: given nothing more\n"));
  // As a node of a version before tells it.
  json older = told;
  for (json& node : older.at("nodes"))
    for (const char* key : {"unreachable", "apart", "clock_off"}) node.erase(key);
  EXPECT_THAT(fleet_text(older.dump()).value_or("no text"), Not(HasSubstr("no way to")));
}

TEST_F(FleetPictureTest, ANodeThatIsGoneLeavesItsCamerasToBeGivenAway) {
  standing_.nodes.erase("c2");
  said_.erase("c2");
  EXPECT_EQ(page({.camera = "yard"}).at("list")[0].at("reason"), "its node c2 is gone");
  EXPECT_THAT(explained("yard"),
              Contains("Node c2 is gone: its lease has ended, and yard is to be given to another."));
}

TEST_F(FleetPictureTest, WithoutAStreamItIsSaidWhy) {
  give("c1", "gate", 3, "");
  said_["c1"].answer->why_unplaced["gate"] = "no node with the role stream";
  EXPECT_EQ(page().at("cameras").at("without_stream"), 1);
  EXPECT_THAT(explained("gate"),
              Contains("No node computes it, so that it is not watched: no node with the role stream."));
}

TEST_F(FleetPictureTest, APlannerThatIsSilentOrMissingIsTheReason) {
  silence("c1");
  EXPECT_EQ(page({.camera = "attic"}).at("list")[0].at("why_unplaced"), "node c1, which plans, does not say");
  standing_.planner = "";
  EXPECT_EQ(page({.camera = "attic"}).at("list")[0].at("why_unplaced"), "nobody plans");
  EXPECT_THAT(explained("gate"), Contains("No node plans, so that nothing moves until one does."));
  EXPECT_THAT(text_, Not(HasSubstr("the registry")));
}

TEST_F(FleetPictureTest, PartsOfACameraAreSaid) {
  give("c1", "gate", 3, "gpu");
  plan_["c1"].cameras["gate"].rung = "fewer frames";
  plan_["c1"].cameras["gate"].vision = "eye";
  standing_.nodes.at("c1").state = cluster::NodeState::draining;
  EXPECT_EQ(page().at("cameras").at("rungs"), json::parse(R"({"full": 1, "fewer frames": 1})"));
  EXPECT_THAT(explained("gate"), Contains("There is less of it than its settings say: fewer frames."));
  plan_["c1"].cameras["gate"].former_stream = "old";
  EXPECT_THAT(explained("gate"), Not(Contains(HasSubstr("Until these are full")))) << "it is gone";
  standing_.nodes["old"] = {};
  EXPECT_THAT(explained("gate"), Contains("Until these are full there, node old goes on answering."));
  cluster::PlannedCamera& gate = plan_["c1"].cameras["gate"];
  gate.former_stream = gate.stream;
  gate.former_vision = "old";
  EXPECT_THAT(explained("gate"), Contains("Until node eye encodes for it, node old does."));
  EXPECT_THAT(explained("gate"),
              Contains(HasSubstr("Node gpu computes its windows, what it sees node eye: ")));
  EXPECT_THAT(explained("gate"), Contains("Node c1 drains: it hands over what it has."));
}

TEST_F(FleetPictureTest, WithoutTheRegistryItIsSaidHowOldThatIs) {
  registry_fault_ = "it did not answer when it was asked last";
  plan_age_ = 75s;
  EXPECT_EQ(page().at("registry").at("answers"), false);
  EXPECT_THAT(text_,
              HasSubstr("the registry does not answer, so that nothing moves: it did not answer when it was "
                        "asked last\nwho has what is what nodes say, and of others what the registry told "
                        "1 min ago\n"));
  EXPECT_THAT(explained("gate"),
              Contains("It told who has what 1 min ago; what nodes say that they have is newer."));
  plan_age_.reset();
  EXPECT_EQ(page().at("registry").at("plan_seconds"), nullptr);
  EXPECT_THAT(explained("gate"), Contains("Who has what is known of the nodes that answer alone."));
}

TEST_F(FleetPictureTest, WhatNodesSayOfTheirPlansIsNewerThanWhatWasKnown) {
  silence("c2");
  said_["c1"].answer->plan = cluster::NodePlan{12, {{"barn", planned(12)}}};
  const auto told = plan_told(plan_, said_);
  EXPECT_EQ(owner_of(*told, "barn"), "c1");
  EXPECT_EQ(owner_of(*told, "gate"), "") << "c1 has it no longer";
  EXPECT_EQ(owner_of(*told, "yard"), "c2") << "it does not say";
}

TEST_F(FleetPictureTest, EachNodeIsAskedForItsOwnCamerasAndThePlannerForThoseWithout) {
  const FleetPicture now = picture();
  const FleetPage all = page_of({.cameras = true}, *now.plan, standing_.wanted);
  EXPECT_THAT(all.cameras, ElementsAre("attic", "gate", "yard"));
  auto questions = questions_of(standing_, *now.plan, all, false);
  EXPECT_THAT(questions.at("c1").cameras, ElementsAre("attic", "gate"));
  EXPECT_THAT(questions.at("c2").cameras, ElementsAre("yard"));
  EXPECT_THAT(questions.at("gpu").cameras, IsEmpty());
  EXPECT_FALSE(questions.at("gpu").plan);
  questions = questions_of(standing_, *now.plan, all, true);
  EXPECT_THAT(questions.at("gpu").cameras, SizeIs(3)) << "who has what is known of nobody";
  EXPECT_TRUE(questions.at("c2").plan);
}

TEST_F(FleetPictureTest, AnswersAreBoundedHoweverLargeTheFleet) {
  for (int i = 0; i < 5000; ++i) give("c2", "cam-" + std::to_string(10'000 + i), 100, "gpu");
  for (int i = 0; i < 2500; ++i) node("n" + std::to_string(i), {});
  // The schema's check of so many would take seconds.
  const FleetPicture now = picture();
  const FleetQuery query{.cameras = true};
  const std::string text = print(now, query, page_of(query, *now.plan, standing_.wanted));
  const json told = json::parse(text);
  EXPECT_EQ(told.at("list").size(), FleetQuery::kMost);
  EXPECT_EQ(told.at("nodes").size(), 2000U);
  EXPECT_EQ(told.at("nodes_there"), 2503U);
  EXPECT_THAT(fleet_text(text).value_or(""), HasSubstr("and 503 other nodes\n"));
  for (const auto& [name, question] :
       questions_of(standing_, *now.plan, page_of(query, *now.plan, standing_.wanted), false))
    EXPECT_LE(question.cameras.size(), NodeQuestion::kMost);
}

TEST_F(FleetPictureTest, WordsOfOthersSteerNoTerminalAndSpoilNoJson) {
  state("c1", "gate", "up\x1b[2J", "\xff\x1b[31m", 1s);
  const FleetPicture now = picture();
  const std::string text =
      print(now, {.cameras = true}, page_of({.cameras = true}, *now.plan, standing_.wanted));
  const auto shown = fleet_text(text);
  ASSERT_TRUE(shown);
  EXPECT_EQ(shown->find('\x1b'), std::string::npos);
}

TEST_F(FleetPictureTest, WhoeverAddsSomethingSaysSoInTheSchema) {
  json told = page();
  told["nodes"][0]["secret"] = "hunter2";
  EXPECT_NE(schema_faults(told), "");
}

TEST(FleetText, WhatIsNoFleetHasNoText) {
  for (const char* text : {"", "nonsense", "[]", "{\"fleet\":\"city\"}", "<html>"})
    EXPECT_EQ(fleet_text(text), std::nullopt) << text;
}

TEST(FleetText, SaysWhyOnceAndNothingOfWhatIsNoMore) {
  const auto shown = fleet_text(
      R"({"fleet":"f","node":"n","planner":"n","registry":{"answers":true,"fault":"","remark":"","plan_seconds":0},)"
      R"("configuration":{"runs":"","version":0,"waits":[]},"nodes":[],"nodes_there":0,"nodes_silent":0,)"
      R"("cameras":{"wanted":1,"planned":1,"unplaced":0,"without_stream":1,"handing_over":0,"states":{},"rungs":{}},)"
      R"("next":null,"list":[{"camera":"gate","owner":"c1","former":"","fence":3,"stream":"","state":"down",)"
      R"("since_seconds":1,"rung":"refused","reason":"not watched","why":"first choice",)"
      R"("why_stream":"its node old is gone; first choice","why_rung":"no room","why_unplaced":"no room"}]})");
  ASSERT_TRUE(shown);
  EXPECT_THAT(*shown, ::testing::HasSubstr("  not watched; first choice; no room\n"));
}

}  // namespace
}  // namespace vigil::fleet
