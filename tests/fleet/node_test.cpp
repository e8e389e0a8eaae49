// Nodes that know each other by a registry in memory, and what any of them shows of all; under the
// deterministic scheduler.
#include <list>
#include <sstream>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "cluster/registry/memory_registry.h"
#include "fleet/node/node_actor.h"
#include "fleet/status/fleet_status_actor.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::ManualClock;
using cluster::NodeRole;
using nlohmann::json;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Config : caf::actor_system_config {
  Config() {
    set("scheduler.policy", caf::atom("testing"));
    add_message_types<caf::id_block::vigil>();
    add_message_types<caf::id_block::vigil_fleet>();
  }
};

/// Answers like a dock that has seen a fence.
dock_actor::behavior_type seasoned_dock(dock_actor::pointer self, std::uint64_t fence) {
  return {[](actors::join_atom) {},
          [](const actors::WindowAnswersPtr&) {},
          [](const actors::Explanation&) {},
          [](end_atom, const std::string&) {},
          [](const actors::DeviceReport&) {},
          [](attach_atom, const std::string&, const std::string&, const std::string&) { return false; },
          [](const actors::Explain&) {},
          [](const actors::Done&) {},
          [](const BulkArrivalPtr&) {},
          [](const BulkNews&) {},
          [](tokens_atom, join_atom, const actors::WatchPtr&, std::uint32_t) {},
          [](tokens_atom, const actors::WatchPtr&) {},
          [](const actors::VisualPatchPtr&) {},
          [](tokens_atom, end_atom, const std::string&) {},
          [](tokens_atom, const std::string&, bool) {},
          [](tokens_atom, const actors::Explain&) {},
          [](const actors::CarriedTextPtr&) {},
          [](const TextsAt&) {},
          [](tokens_atom, const actors::Explanation&) {},
          [](const actors::TokensRoom&) {},
          [](const actors::TokensAck&) {},
          [](tokens_atom, attach_atom, const std::string&) { return false; },
          [](tokens_atom, const actors::TokensRoom&) {},
          [](tokens_atom, const actors::TokensAck&) {},
          [](tokens_atom, const GuestRefused&) {},
          [](tokens_atom, detach_atom, const std::string&, const std::string&) {},
          [](way_atom, const caf::strong_actor_ptr&) {},
          [](const DockWay&) {},
          [](tick_atom) {},
          [fence](fence_atom) { return fence; },
          [self](stop_atom) { self->quit(); }};
}

/// Answers like a gateway with books.
gateway_actor::behavior_type seasoned_gateway(gateway_actor::pointer self,
                                              const std::shared_ptr<std::uint64_t>& fence) {
  return {[](const MakerTalk&) { return GatewayTalk(); },
          [](const PeerQuestion&) { return PeerAnswer(); },
          [](const GatewayNewsPtr&) {},
          [](tick_atom) {},
          [fence](fence_atom) { return *fence; },
          [self](stop_atom) { self->quit(); }};
}

using mute_actor = greeter_actor;

/// Greets as the node does, and owes all other answers.
mute_actor::behavior_type mute_greeter(mute_actor::pointer self, const node_actor& node) {
  const auto owed = std::make_shared<std::vector<caf::typed_response_promise<std::string>>>();
  return {
      [self, node](greet_atom, const std::string& text) { return self->delegate(node, greet_atom_v, text); },
      [](dock_atom) { return caf::strong_actor_ptr(); },
      [](gateway_atom) { return caf::strong_actor_ptr(); },
      [self, owed](report_atom, const std::string&) -> caf::result<std::string> {
        owed->push_back(self->make_response_promise<std::string>());
        return owed->back();
      },
      [](find_atom, const std::string&) { return std::uint64_t{0}; },
      [](fetch_atom, const EvidenceWish&) {}};
}

class NodeTest : public ::testing::Test {
 protected:
  struct Node {
    Node(NodeTest& test, const std::string& own) : name(own), board(test.clock_) {
      registry.emplace(test.store_, test.clock_,
                       cluster::MemoryRegistry::Options{.post =
                                                            [this, &test](auto, std::function<void()> step) {
                                                              if (!is_cut)
                                                                test.steps_.push_back(std::move(step));
                                                            },
                                                        .time_limit = 5000ms});
    }

    std::string name;
    bool is_cut = false;
    actors::StatusBoard board;
    std::optional<cluster::MemoryRegistry> registry;
    node_actor actor;
    fleet_status_actor status;
  };

  ~NodeTest() override {
    for (Node& node : nodes_) {
      node.is_cut = false;
      caf::anon_send(node.actor, actors::stop_atom_v);
    }
    // What was asked of a registry that was cut off is answered by then.
    pass(6s);
    for (const mute_actor& mute : mutes_) caf::anon_send_exit(mute, caf::exit_reason::user_shutdown);
    settle();
  }

  Node& start(const std::string& name, std::set<NodeRole> roles, dock_actor dock = {},
              gateway_actor gateway = {}) {
    Node& node = nodes_.emplace_back(*this, name);
    cluster::NodeRecord record;
    record.name = name;
    record.incarnation = "1";
    record.roles = std::move(roles);
    record.state = cluster::NodeState::ready;
    record.control = record.bulk = {name, 7400};
    NodeWays ways;
    ways.find = [this](const cluster::PeerAddress& address, auto done) {
      for (const Node& each : nodes_)
        if (each.name == address.host) {
          if (!mute_.contains(each.name)) return done(greeter_actor(each.actor));
          mutes_.push_back(system_.spawn(mute_greeter, each.actor));
          return done(greeter_actor(mutes_.back()));
        }
      done("nobody listens there");
    };
    ways.resolve = [](const cluster::PeerAddress& address, auto done) { done({address}); };
    const auto settings = std::make_shared<config::Settings>();
    settings->cameras = cameras_;
    const auto configuration =
        std::make_shared<const ReadConfiguration>(ReadConfiguration{"c0ffee", settings, ""});
    node.actor = system_.spawn(fleet::node, NodeDeps{.fleet = "city",
                                                     .record = record,
                                                     .lease = 3000ms,
                                                     .registry = *node.registry,
                                                     .ways = ways,
                                                     .configuration = configuration,
                                                     .resolve = [](auto camera) { return camera; },
                                                     .supervisor = {},
                                                     .dock = std::move(dock),
                                                     .gateway = std::move(gateway),
                                                     .clock = clock_,
                                                     .metrics = metrics_,
                                                     .board = node.board,
                                                     .logger = logger_});
    node.status =
        system_.spawn(fleet_status, FleetStatusDeps{"city", node.actor, *node.registry, clock_, logger_});
    return node;
  }

  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    do {
      while (scheduler.try_run_once()) {
      }
      for (auto& step : std::exchange(steps_, {})) step();
    } while (scheduler.has_job() || !steps_.empty());
  }
  void pass(base::Duration span) {
    settle();
    for (base::Duration step(0); step < span; step += 50ms) {
      clock_.advance(50ms);
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(50ms);
      store_->expire();
      for (Node& node : nodes_) node.registry->expire();
      settle();
    }
  }

  /// What a node shows, within so much time; null if that is nothing.
  json shown(const Node& node, const FleetQuery& query = {}, base::Duration within = 100ms) {
    caf::scoped_actor self{system_};
    auto asked = self->request(node.status, caf::infinite, report_atom_v, query);
    pass(within);
    json told;
    if (!self->has_next_message()) return told;
    asked.receive([&](const FleetReplyPtr& reply) { told = json::parse(reply->page); },
                  [&](const caf::error& error) { told = system_.render(error); });
    return told;
  }
  static json camera_of(const json& page, const std::string& name) {
    for (const json& camera : page.at("list"))
      if (camera.at("camera") == name) return camera;
    return {};
  }
  static json node_of(const json& page, const std::string& name) {
    for (const json& node : page.at("nodes"))
      if (node.at("node") == name) return node;
    return {};
  }
  void wish(const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      config::CameraSettings camera;
      camera.name = name;
      cameras_.push_back(camera);
    }
  }

  ManualClock clock_;
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)};
  actors::Metrics metrics_;
  std::vector<std::function<void()>> steps_;
  std::shared_ptr<cluster::MemoryStore> store_ = std::make_shared<cluster::MemoryStore>(clock_);
  std::vector<config::CameraSettings> cameras_;
  /// Nodes that say nothing after their greetings.
  std::set<std::string> mute_;
  Config config_;
  caf::actor_system system_{config_};
  std::list<Node> nodes_;
  std::vector<mute_actor> mutes_;
};

const std::set<NodeRole> kComputes = {NodeRole::vision, NodeRole::stream, NodeRole::generate};

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
  EXPECT_EQ(shown(gpu, {.camera = "zoo"}).at("list")[0].at("state"), "unplaced");
}

TEST_F(NodeTest, ANodeThatDoesNotAnswerIsNamedWithinTwoSeconds) {
  wish({"gate"});
  mute_.insert("zed");
  // A gateway deals with all, and of two nodes the first by name greets the other.
  std::set<NodeRole> roles = kComputes;
  roles.insert(NodeRole::gateway);
  Node& gpu = start("gpu", roles);
  start("zed", {NodeRole::camera});
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

TEST_F(NodeTest, AGatewayTellsTheHighestFenceThatItsBooksHave) {
  const auto fence = std::make_shared<std::uint64_t>(0);
  const gateway_actor gateway = system_.spawn(seasoned_gateway, fence);
  Node& g1 = start("g1", {NodeRole::gateway}, {}, gateway);
  const Node& c1 = start("c1", {NodeRole::camera});
  pass(3s);
  // As the registry has it.
  const auto told = [&] {
    caf::scoped_actor self{system_};
    auto asked = self->request(c1.actor, caf::infinite, stand_atom_v);
    settle();
    std::uint64_t highest = 0;
    asked.receive([&](const NodeStandingPtr& standing) { highest = standing->nodes.at("g1").highest_fence; },
                  [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return highest;
  };
  EXPECT_EQ(told(), 0U);
  *fence = 41;
  pass(2s);
  EXPECT_EQ(told(), 41U) << "from before, when its disk is read";
  *fence = 42;
  pass(2s);
  EXPECT_EQ(told(), 41U) << "whoever has it is there";
  // The registry was set back.
  g1.is_cut = true;
  pass(6s);
  g1.is_cut = false;
  pass(6s);
  EXPECT_EQ(told(), 42U);
  caf::anon_send(gateway, actors::stop_atom_v);
}

TEST_F(NodeTest, OneThatIsAskedToEndIsNotReadyAnyMore) {
  Node& gate = start("g1", {NodeRole::gateway});
  pass(3s);
  ASSERT_TRUE(gate.board.ready());
  caf::anon_send(gate.actor, drain_atom_v);
  settle();
  EXPECT_FALSE(gate.board.ready()) << "at once";
}

TEST_F(NodeTest, FencesThatTheDockAndLinksSawReachTheRegistry) {
  const dock_actor dock = system_.spawn(seasoned_dock, std::uint64_t{17});
  Node& gpu = start("gpu", kComputes, dock);
  Node& c1 = start("c1", {NodeRole::camera});
  pass(3s);
  const auto fence = [&](const std::string& name) {
    caf::scoped_actor self{system_};
    auto asked = self->request(c1.actor, caf::infinite, stand_atom_v);
    settle();
    std::uint64_t highest = 0;
    asked.receive([&](const NodeStandingPtr& standing) { highest = standing->nodes.at(name).highest_fence; },
                  [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return highest;
  };
  EXPECT_EQ(fence("gpu"), 17U);
  caf::anon_send(c1.actor, fence_atom_v, std::uint64_t{23});
  caf::anon_send(c1.actor, fence_atom_v, std::uint64_t{21});
  pass(500ms);
  EXPECT_EQ(fence("c1"), 23U);
  EXPECT_EQ(fence("gpu"), 17U);
  caf::anon_send(dock, actors::stop_atom_v);
  static_cast<void>(gpu);
}

TEST_F(NodeTest, TheNextOwnersFenceIsAboveAllThatAnybodyHasSeen) {
  wish({"gate"});
  Node& c1 = start("c1", {NodeRole::camera});
  pass(100ms);
  caf::anon_send(c1.actor, fence_atom_v, std::uint64_t{1000});
  pass(6s);
  const json page = shown(c1, {.camera = "gate"});
  EXPECT_EQ(page.at("list")[0].at("owner"), "c1");
  EXPECT_GT(page.at("list")[0].at("fence"), 1000);
}

TEST_F(NodeTest, ANodeThatComputesIsDrainedWhenNoCameraNeedsIt) {
  wish({"gate"});
  Node& c1 = start("c1", {NodeRole::camera});
  const dock_actor dock = system_.spawn(seasoned_dock, 0);
  Node& old = start("old", kComputes, dock);
  pass(6s);
  const auto tell_filled = [&](const std::string& text) {
    c1.registry->commit({.conditions = {}, .changes = {cluster::RegistryPut{"/vigil/city/filled/c1", text}}},
                        [](const auto&) {});
    pass(3s);
  };
  tell_filled("1");
  start("new", kComputes);
  pass(2s);
  caf::scoped_actor self{system_};
  auto asked = self->request(old.actor, caf::infinite, drain_atom_v);
  pass(5s);
  EXPECT_FALSE(self->has_next_message()) << "it answers until another one's windows are full";
  const json gate =
      json::parse(store_->range("/vigil/city/plan/c1").entries.at(0).value).at("cameras").at("gate");
  EXPECT_EQ(gate.at("stream"), "new");
  EXPECT_EQ(gate.at("former_stream"), "old");
  tell_filled("1 " + std::to_string(gate.at("stream_fence").get<std::uint64_t>()));
  ASSERT_TRUE(self->has_next_message());
  asked.receive([](bool) {}, [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
  caf::anon_send(dock, actors::stop_atom_v);
}

TEST_F(NodeTest, WhereNobodyElseComputesThereIsNothingToWaitFor) {
  wish({"gate"});
  start("c1", {NodeRole::camera});
  const dock_actor dock = system_.spawn(seasoned_dock, 0);
  Node& only = start("only", kComputes, dock);
  pass(6s);
  caf::scoped_actor self{system_};
  auto asked = self->request(only.actor, caf::infinite, drain_atom_v);
  pass(200ms);
  ASSERT_TRUE(self->has_next_message());
  asked.receive([](bool) {}, [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
  caf::anon_send(dock, actors::stop_atom_v);
}

}  // namespace
}  // namespace vigil::fleet
