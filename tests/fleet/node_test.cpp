// What any node shows of all.
#include "actors/messages/cache.h"
#include "actors/messages/remembered.h"
#include "tests/fleet/node_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using cluster::NodeRole;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::kComputes;
using testing::NodeTest;

TEST_F(NodeTest, AnyNodeShowsAllOfTheFleet) {
  wish({"gate", "yard"});
  Node& c1 = start("c1", {NodeRole::camera});
  Node& gpu = start("gpu", kComputes);
  pass(6s);
  actors::WatchSettings watch;
  watch.name = "gate";
  c1.board.camera(watch, actors::CameraState::down, "Connection refused");
  pass(2s);
  for (const Node* node : {&c1, &gpu}) {
    const json page = shown(*node, {.cameras = true});
    ASSERT_TRUE(page.is_object()) << page;
    EXPECT_EQ(page.at("node"), node->name);
    EXPECT_EQ(page.at("planner"), "c1");
    EXPECT_EQ(page.at("registry").at("answers"), true);
    EXPECT_EQ(page.at("nodes_silent"), 0);
    EXPECT_EQ(node_of(page, "c1").at("membership"), "member");
    EXPECT_GT(node_of(page, "gpu").at("lease_seconds"), 0);
    EXPECT_EQ(node_of(page, "gpu").at("streams"), 2);
    const json gate = camera_of(page, "gate");
    EXPECT_EQ(gate.at("owner"), "c1");
    EXPECT_EQ(gate.at("stream"), "gpu");
    EXPECT_EQ(gate.at("state"), "down");
    EXPECT_EQ(gate.at("reason"), "Connection refused");
    EXPECT_EQ(gate.at("since_seconds"), node == &c1 ? 2.0 : 2.1);
    EXPECT_EQ(camera_of(page, "yard").at("state"), "unknown");
    EXPECT_EQ(page.at("cameras").at("states").at("down"), 1);
  }
}

TEST_F(NodeTest, AllAddressesOfASeedAreAskedBeforeItJoins) {
  start("gpu", kComputes);
  start("g1", {NodeRole::gateway});
  pass(3s);
  // As the name of a headless service; one of its pods is gone already.
  addresses_["nodes.svc"] = {"gone", "gpu", "g1"};
  seeds_ = {{"nodes.svc", 7400}};
  Node& c1 = start("c1", {NodeRole::camera});
  settle();
  EXPECT_THAT(asked_["c1"], ::testing::IsSupersetOf({"gone", "gpu", "g1"}));
  pass(3s);
  EXPECT_EQ(node_of(shown(c1), "c1").at("membership"), "member");
}

TEST_F(NodeTest, OneThatDoesNotFitAtAnyAddressOfASeedIsRefused) {
  model_ = "demo";
  start("gpu", kComputes);
  pass(3s);
  addresses_["nodes.svc"] = {"gone", "gpu"};
  seeds_ = {{"nodes.svc", 7400}};
  model_ = "another";
  Node& other = start("other", kComputes);
  settle();
  EXPECT_THAT(other.expelled, HasSubstr("says the one at gpu:7400: "));
  EXPECT_THAT(other.expelled, HasSubstr("model"));
}

TEST_F(NodeTest, WithWhomANodeDoesNotDealAGatewayDoes) {
  wish({"gate", "yard", "door", "ramp"});
  Node& c1 = start("c1", {NodeRole::camera});
  Node& c2 = start("c2", {NodeRole::camera});
  Node& gpu = start("gpu", kComputes);
  Node& gate = start("w1", {NodeRole::gateway});
  pass(10s);
  const json page = shown(c1, {.cameras = true});
  ASSERT_TRUE(page.is_object()) << page;
  EXPECT_EQ(node_of(page, "gpu").at("answers"), true) << "it computes for it";
  EXPECT_EQ(node_of(page, "w1").at("answers"), true) << "it is a gateway";
  EXPECT_EQ(node_of(page, "c2").at("answers"), false);
  EXPECT_EQ(node_of(page, "c2").at("fault"), "not asked by this node: ask a gateway");
  EXPECT_EQ(page.at("nodes_silent"), 0) << "nobody was asked in vain";
  std::size_t others = 0;
  for (const json& camera : page.at("list"))
    if (camera.at("owner") == "c2") {
      ++others;
      EXPECT_EQ(camera.at("reason"), "its node c2 is not asked by this one: ask a gateway");
    }
  EXPECT_GT(others, 0U);
  for (const Node* node : {&gate, &gpu}) {
    const json all = shown(*node);
    EXPECT_EQ(all.at("nodes_silent"), 0);
    for (const json& each : all.at("nodes")) EXPECT_EQ(each.at("answers"), true) << each;
  }
  static_cast<void>(c2);
}

TEST_F(NodeTest, ACameraWithoutANodeIsToldWithThePlannersReason) {
  wish({"gate"});
  start("gpu", kComputes);
  Node& gpu = start("gpu2", {NodeRole::stream, NodeRole::gateway});
  pass(6s);
  const json page = shown(gpu, {.camera = "gate"});
  EXPECT_EQ(page.at("planner"), "gpu");
  EXPECT_EQ(page.at("list")[0].at("explanation"),
            json::parse(R"(["No node has gate, so that it is not watched: no node with the role camera."])"));
  EXPECT_EQ(shown(gpu, {.camera = "zoo"}).at("list")[0].at("state"), "unknown");
}

TEST_F(NodeTest, ANodeThatDoesNotAnswerIsNamedWithinTwoSeconds) {
  wish({"gate"});
  mute_.insert("zed");
  // A gateway deals with all, and of two nodes the first by name greets the other.
  std::set<NodeRole> roles = kComputes;
  roles.insert(NodeRole::gateway);
  start("zed", {NodeRole::camera});
  Node& gpu = start("gpu", roles);
  pass(6s);
  EXPECT_EQ(shown(gpu, {.camera = "gate"}, 1900ms), nullptr) << "it is waited for";
  pass(200ms);
  const json page = shown(gpu, {.camera = "gate"});
  ASSERT_TRUE(page.is_object()) << "that has just been found out";
  EXPECT_EQ(node_of(page, "zed").at("answers"), false);
  EXPECT_EQ(node_of(page, "zed").at("fault"), "it did not answer within 2s");
  EXPECT_EQ(node_of(page, "zed").at("heard_seconds"), nullptr);
  EXPECT_EQ(page.at("list")[0].at("owner"), "zed");
  EXPECT_EQ(page.at("list")[0].at("state"), "unknown");
  EXPECT_EQ(node_of(page, "gpu").at("answers"), true);
}

TEST_F(NodeTest, ANodeThatHasEndedIsNamedAtOnce) {
  wish({"gate"});
  Node& gpu = start("gpu", kComputes);
  Node& c1 = start("c1", {NodeRole::camera});
  pass(6s);
  ASSERT_EQ(shown(gpu).at("nodes_silent"), 0);
  // Gone without a word: its lease still holds.
  caf::anon_send_exit(c1.actor, caf::exit_reason::kill);
  pass(1s);
  const json page = shown(gpu);
  ASSERT_TRUE(page.is_object());
  EXPECT_EQ(node_of(page, "c1").at("fault"), "there is no way to it yet");
  EXPECT_GT(node_of(page, "c1").at("heard_seconds"), 1);
}

TEST_F(NodeTest, WhatANodeDoesFailsWithAnyOfItsParts) {
  const auto gateway = system_.spawn(testing::seasoned_gateway, std::make_shared<std::uint64_t>(0));
  Node& gate = start("w1", {NodeRole::gateway}, {}, gateway);
  // Of a supervisor, what a node asks for alone.
  const caf::actor supervisor = system_.spawn([](caf::event_based_actor* self) -> caf::behavior {
    self->set_default_handler([](caf::scheduled_actor*, caf::message_view&) -> caf::result<caf::message> {
      return caf::message();
    });
    return {[](actors::stages_atom) { return actors::Stages(); }};
  });
  Node& camera =
      start("c1", {NodeRole::camera}, {}, {}, {}, "1", caf::actor_cast<actors::supervisor_actor>(supervisor));
  pass(6s);
  ASSERT_EQ(gate.expelled + camera.expelled, "");
  caf::anon_send_exit(gateway, caf::exit_reason::kill);
  const auto* const own = static_cast<node_actor::stateful_pointer<node_state>>(
      caf::actor_cast<caf::abstract_actor*>(camera.actor));
  ASSERT_TRUE(own->state.turns);
  caf::anon_send_exit(own->state.turns, caf::exit_reason::kill);
  pass(100ms);
  EXPECT_EQ(gate.expelled, "what this node does has failed");
  EXPECT_EQ(camera.expelled, "what this node does has failed");
  caf::anon_send_exit(supervisor, caf::exit_reason::user_shutdown);
}

TEST_F(NodeTest, WhatItRemembersIsKeptAsLongAsItsConfigurationSays) {
  wish({"gate", "yard"});
  cameras_[0].labels["tenant"] = "north";
  cameras_[0].stream.keep = 90min;
  cameras_[1].stream.keep = 0min;
  std::map<history::CameraId, base::Duration> kept;
  const caf::actor cache = system_.spawn([&kept](caf::event_based_actor*) -> caf::behavior {
    return {[&kept](const actors::KeepsPtr& keeps) { kept = keeps->cameras; }};
  });
  cache_ = caf::actor_cast<actors::cache_actor>(cache);
  start("gpu", kComputes);
  pass(6s);
  EXPECT_THAT(kept, ElementsAre(std::pair(history::CameraId{"default", "yard"}, base::Duration(0)),
                                std::pair(history::CameraId{"north", "gate"}, base::Duration(90min))));
  cache_ = actors::cache_actor();
  caf::anon_send_exit(cache, caf::exit_reason::user_shutdown);
}

TEST_F(NodeTest, WithTheRegistryGoneNodesSayWhatTheyHave) {
  wish({"gate", "yard"});
  Node& c1 = start("c1", {NodeRole::camera});
  Node& gpu = start("gpu", kComputes);
  pass(6s);
  // Nobody has ever asked, so that nothing of the plan is known but by the nodes.
  c1.is_cut = gpu.is_cut = true;
  pass(7s);
  json page = shown(gpu, {.cameras = true});
  EXPECT_EQ(page.at("registry").at("answers"), false);
  EXPECT_EQ(page.at("registry").at("fault"), "it did not answer when it was asked last");
  EXPECT_EQ(page.at("registry").at("plan_seconds"), nullptr);
  EXPECT_EQ(camera_of(page, "gate").at("owner"), "c1");
  EXPECT_EQ(node_of(page, "c1").at("membership"), "cut off");
  EXPECT_EQ(node_of(page, "c1").at("registry_answers"), false);
  c1.is_cut = gpu.is_cut = false;
  pass(5s);
  page = shown(gpu, {.cameras = true});
  EXPECT_EQ(page.at("registry").at("answers"), true);
  EXPECT_EQ(page.at("registry").at("plan_seconds"), 0.0);
  EXPECT_EQ(camera_of(page, "yard").at("owner"), "c1");
}

TEST_F(NodeTest, ARegistryThatFallsSilentWhileItIsAskedIsWaitedForTwoSeconds) {
  wish({"gate"});
  Node& c1 = start("c1", {NodeRole::camera});
  pass(6s);
  ASSERT_EQ(shown(c1).at("registry").at("plan_seconds"), 0.0);
  pass(1s);
  c1.is_cut = true;
  const json page = shown(c1, {.camera = "gate"}, 2100ms);
  ASSERT_TRUE(page.is_object());
  EXPECT_EQ(page.at("registry").at("fault"), "it did not answer within 2s");
  EXPECT_EQ(page.at("list")[0].at("owner"), "c1") << "as was known";
}

TEST_F(NodeTest, WhoAsksTheSameAtOnceIsToldTheSame) {
  Node& c1 = start("c1", {NodeRole::camera});
  pass(3s);
  const json first = shown(c1);
  // Gone from the registry within the second.
  c1.is_cut = true;
  EXPECT_EQ(shown(c1), first);
  pass(1s);
  EXPECT_NE(shown(c1, {}, 2100ms), first);
}

TEST_F(NodeTest, OnlySoManyDifferentQuestionsAreAnsweredAtOnce) {
  Node& c1 = start("c1", {NodeRole::camera});
  pass(3s);
  c1.is_cut = true;
  caf::scoped_actor self{system_};
  std::vector<std::string> refused;
  using Asked = decltype(self->request(c1.status, caf::infinite, report_atom_v, FleetQuery()));
  std::list<Asked> asked;
  for (int i = 0; i < 9; ++i)
    asked.push_back(self->request(c1.status, caf::infinite, report_atom_v,
                                  FleetQuery{.camera = "cam" + std::to_string(i)}));
  pass(2500ms);
  for (Asked& each : asked)
    each.receive([](const FleetReplyPtr& reply) { EXPECT_FALSE(reply->is_known); },
                 [&](const caf::error& error) { refused.push_back(system_.render(error)); });
  EXPECT_THAT(refused, ElementsAre(HasSubstr("too many ask at once")));
}

TEST_F(NodeTest, AQuestionThatMakesNoSenseIsRefused) {
  Node& c1 = start("c1", {NodeRole::camera});
  pass(3s);
  caf::scoped_actor self{system_};
  for (const char* text : {"", "{}", "[", "\xff"}) {
    auto asked = self->request(greeter_actor(c1.actor), caf::infinite, report_atom_v, std::string(text));
    settle();
    asked.receive([&](const std::string& answer) { ADD_FAILURE() << answer; },
                  [&](const caf::error& error) {
                    EXPECT_THAT(system_.render(error), HasSubstr("no question about a node"));
                  });
  }
  EXPECT_EQ(node_of(shown(c1), "c1").at("answers"), true) << "it goes on";
}

}  // namespace
}  // namespace vigil::fleet
