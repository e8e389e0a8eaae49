// Which fences a node tells, and what it does when it is asked to end.
#include "actors/evidence/clip_index.h"
#include "fleet/messages/clip_wish.h"
#include "tests/fleet/node_world.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using cluster::NodeRole;
using nlohmann::json;
using testing::kComputes;
using testing::NodeTest;
using testing::seasoned_dock;
using testing::seasoned_gateway;

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

TEST_F(NodeTest, ANodeTellsWhichOfItsClipsShowWhatACameraSaw) {
  const Node& none = start("c0", {NodeRole::camera});
  actors::ClipIndex kept;
  kept.add("a", {{"acme", "gate"}, {100, 200}}, "a.mp4", "a.jpg");
  clips_ = &kept;
  const Node& c1 = start("c1", {NodeRole::camera});
  const auto told = [&](const Node& node, const std::string& wish) {
    caf::scoped_actor self{system_};
    auto asked = self->request(node.actor, caf::infinite, find_atom_v, past_atom_v, wish);
    settle();
    std::string text;
    asked.receive([&](const std::string& found) { text = found; },
                  [&](const caf::error& error) { text = system_.render(error); });
    return text;
  };
  const std::string wish = print(ClipWish{{"acme", "gate"}, {{150, 300}, {300, 400}}});
  EXPECT_EQ(parse_found_clips(told(c1, wish)),
            (FoundClips{actors::ShownClip{"a.mp4", "a.jpg", 100, 50}, std::nullopt}));
  EXPECT_EQ(parse_found_clips(told(none, wish)), (FoundClips{std::nullopt, std::nullopt}));
  EXPECT_NE(told(c1, "{").find("no wish for clips"), std::string::npos);
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
  caf::anon_send(c1.actor, fence_atom_v, std::string("elsewhere"), std::uint64_t{23});
  caf::anon_send(c1.actor, fence_atom_v, std::string("elsewhere"), std::uint64_t{21});
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
  caf::anon_send(c1.actor, fence_atom_v, std::string("elsewhere"), std::uint64_t{1000});
  pass(6s);
  const json page = shown(c1, {.camera = "gate"});
  EXPECT_EQ(page.at("list")[0].at("owner"), "c1");
  EXPECT_GT(page.at("list")[0].at("fence"), 1000);
}

TEST_F(NodeTest, AFenceByWhichItsCameraIsRefusedThoughItHasItIsToldToWhoeverPlans) {
  wish({"gate", "yard"});
  Node& c1 = start("c1", {NodeRole::camera});
  pass(6s);
  const auto fences = [&] {
    const json page = shown(c1, {.cameras = true});
    return std::pair(camera_of(page, "gate").at("fence").get<std::uint64_t>(),
                     camera_of(page, "yard").at("fence").get<std::uint64_t>());
  };
  const auto before = fences();
  const auto refuse = [&](std::uint64_t fence) {
    caf::anon_send(c1.actor, fence_atom_v, std::string("gate"), fence);
    pass(4s);
  };
  refuse(before.first);
  const auto after = fences();
  EXPECT_GT(after.first, std::max(before.first, before.second)) << "another owner has that one";
  EXPECT_EQ(after.second, before.second);
  refuse(before.first);
  EXPECT_EQ(fences(), after) << "it has a higher one";
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

TEST_F(NodeTest, WhereNobodyElseReadsCamerasThereIsNothingToWaitFor) {
  wish({"gate"});
  Node& only = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  ASSERT_EQ(camera_of(shown(only, {.cameras = true}), "gate").at("owner"), "c1");
  caf::scoped_actor self{system_};
  auto asked = self->request(only.actor, caf::infinite, drain_atom_v);
  pass(200ms);
  ASSERT_TRUE(self->has_next_message());
  asked.receive([](bool) {}, [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
}

TEST_F(NodeTest, WhoeverElseReadsCamerasIsWaitedFor) {
  wish({"gate"});
  Node& old = start("c1", {NodeRole::camera});
  start("gpu", kComputes);
  pass(6s);
  Node& next = start("c2", {NodeRole::camera});
  pass(2s);
  caf::scoped_actor self{system_};
  auto asked = self->request(old.actor, caf::infinite, drain_atom_v);
  pass(2s);
  EXPECT_FALSE(self->has_next_message()) << "the other one does not deliver yet";
  actors::WatchSettings watch;
  watch.name = "gate";
  next.board.camera(watch, actors::CameraState::up, "");
  pass(3s);
  ASSERT_TRUE(self->has_next_message());
  asked.receive([](bool) {}, [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
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
