// Cameras of one node and the device of another, with all that lies between, under the deterministic
// scheduler.
#include <gmock/gmock.h>

#include "fleet/dock/dock_actor.h"
#include "fleet/link/link_actor.h"
#include "tests/actors/patches.h"
#include "tests/fleet/camera_node.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::frames;
using actors::testing::slot;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LinkTest : public testing::CameraNodeTest {
 protected:
  /// Another camera node, by hand: its port, and its link, which writes down what it hears.
  struct OtherCameraNode {
    OtherCameraNode(LinkTest& link_test, std::vector<std::string>& heard)
        : test(link_test),
          link(testing::link_by_hand(test.system_, heard)),
          port({.name = "cam2"}, "cam2:1", "", owner, test.network_) {
      port.set_peers({{"gpu", "gpu:1"}});
      test.far_.set_peers({{"cam", "cam:1"}, {"cam2", "cam2:1"}});
      test.pass(2s);
      caf::send_as(caf::actor_cast<caf::actor>(link), test.dock_, attach_atom_v, std::string("cam2"),
                   std::string("gpu"), std::string("gpu"));
      test.pass(100ms);
    }
    ~OtherCameraNode() {
      caf::anon_send_exit(link, caf::exit_reason::kill);
      test.pass(50ms);
    }
    bool join(const actors::WatchSettings& watch, std::uint32_t generation = 0) {
      return static_cast<bool>(port.send("gpu", write(JoinFrame{watch, generation, "gpu"})));
    }
    /// A patch of the camera, at this time.
    bool bring(const actors::WatchSettings& watch, double seconds, std::size_t frames = 2) {
      actors::FramePatch patch =
          *actors::testing::frame_patch(std::make_shared<const actors::WatchSettings>(watch), seconds, 90);
      patch.frames.resize(frames);
      patch.sequence = sequence++;
      patch.captured = {test.clock_.now(), test.clock_.wall()};
      return static_cast<bool>(port.send("gpu", write(pack(patch, 2, test.clock_))));
    }

    LinkTest& test;
    std::uint64_t sequence = 0;
    link_actor link;
    testing::Owner owner;
    cluster::MemoryBulk port;
  };

  LinkTest() {
    near_.set_peers({{"gpu", "gpu:1"}});
    far_.set_peers({{"cam", "cam:1"}});
  }

  void TearDown() override {
    PipelineTest::TearDown();
    caf::anon_send(node_, actors::stop_atom_v);
    if (link_) caf::anon_send(link_, actors::stop_atom_v);
    if (dock_) caf::anon_send(dock_, actors::stop_atom_v);
    near_owner_ = {};
    far_owner_ = {};
    pass(1s);
  }

  void start_dock() {
    DockDeps deps{.node = "gpu",
                  .devices = {slot(encoder_, language_)},
                  .group = 2,
                  .clock = clock_,
                  .metrics = far_metrics_,
                  .board = far_board_,
                  .logger = logger_,
                  .threads = actors::Threads::scheduled};
    dock_ = system_.spawn(dock, std::move(deps));
    far_owner_.on_arrival = [this](const BulkArrivalPtr& arrival) { caf::anon_send(dock_, arrival); };
    far_owner_.on_news = [this](const BulkNews& news) { caf::anon_send(dock_, news); };
    pass(100ms);
  }

  void start_link() {
    const actors::Stages own = stages();
    link_ = system_.spawn(
        link,
        LinkDeps{"cam", "gpu", "gpu",
                 [this](const cluster::BulkMessage& message) { return near_.send("gpu", message); }, 2,
                 clock_, metrics_, logger_, node_},
        dock_, dock_, own.router, own.alerts, actors::device_listener_actor(supervisor_));
    near_owner_.on_news = [this](const BulkNews& news) { caf::anon_send(link_, news); };
    // What the port heard before there was anybody to tell.
    if (near_.counters().at("gpu").outgoing.open)
      caf::anon_send(link_, BulkNews{"gpu", BulkNews::What::opened});
    pass(200ms);
  }

  /// A camera with a fence of 5, whose pictures go on.
  void start_gate() {
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
    start_dock();
    start_node({owned("gate", 5)});
    start_link();
  }

  /// By the plan, as its node does it.
  void refuse(const std::string& camera, std::uint64_t fence, base::Duration stride = 2s) {
    auto settings = std::make_shared<actors::OwnCamera>(*owned(camera, fence));
    settings->tenure.device.clear();
    settings->tenure.withheld = "refused: no room";
    settings->stream.window.stride = stride;
    caf::anon_send(link_, moved_atom_v, camera, false);
    plan({settings});
  }

  /// The link's own node, as far as a link deals with it.
  static node_actor::behavior_type hearing_node(node_actor::pointer self,
                                                std::vector<std::pair<std::string, std::uint64_t>>* fences) {
    return {[](greet_atom, const std::string&) { return std::string(); },
            [](dock_atom) { return caf::strong_actor_ptr(); },
            [](report_atom, const std::string&) { return std::string(); },
            [](find_atom, const std::string&) { return std::uint64_t{0}; },
            [](find_atom, past_atom, const std::string&) { return std::string(); },
            [](fetch_atom, const EvidenceWish&) {},
            [](const Piece& piece) { piece.run(); },
            [](const BulkNews&) {},
            [](const BulkArrivalPtr&) {},
            [](const ReadConfigurationPtr&) {},
            [](way_atom, const std::string&) {},
            [](gateway_atom) { return caf::strong_actor_ptr(); },
            [](past_atom) { return caf::strong_actor_ptr(); },
            [](serves_atom, bool) {},
            [](keeps_atom, bool) {},
            [](stand_atom) { return NodeStandingPtr(); },
            [fences](fence_atom, const std::string& camera, std::uint64_t fence) {
              fences->emplace_back(camera, fence);
            },
            [](drain_atom) { return true; },
            [](tick_atom) {},
            [self](stop_atom) { self->quit(); }};
  }

  std::vector<std::pair<std::string, std::uint64_t>> fences_;
  node_actor node_ = system_.spawn(hearing_node, &fences_);
  testing::Owner near_owner_;
  testing::Owner far_owner_;
  cluster::MemoryBulk near_{{.name = "cam"}, "cam:1", "", near_owner_, network_};
  cluster::MemoryBulk far_{{.name = "gpu"}, "gpu:1", "", far_owner_, network_};
  actors::Metrics far_metrics_;
  actors::StatusBoard far_board_{clock_};
  dock_actor dock_;
  link_actor link_;
};

TEST_F(LinkTest, AlertsComeOfACameraThatAnotherNodeComputes) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(8s);
  EXPECT_TRUE(told_of("gate up"));
  EXPECT_TRUE(told_of("gate/person new"));
  EXPECT_GT(encoder_.frames, 10U);
}

TEST_F(LinkTest, TextsAreExplainedByTheNodeThatHasTheWindow) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  auto settings = std::make_shared<actors::OwnCamera>(*owned("gate", 5));
  settings->rules[0].explain = true;
  start_node({settings});
  start_link();
  pass(8s);
  ASSERT_TRUE(told_of("gate/person new"));
  const auto event = std::find_if(publisher_.messages.begin(), publisher_.messages.end(),
                                  [](const auto& each) { return each.topic.starts_with("alert/"); });
  EXPECT_FALSE(nlohmann::json::parse(event->body)["data"]["description"].get<std::string>().empty());
}

TEST_F(LinkTest, ACameraWaitsForANodeThatIsNotThereYet) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_node({owned("gate", 5)});
  pass(1500ms);
  EXPECT_THAT(told("status/"), IsEmpty()) << "it may come at any moment";
  pass(1s);
  EXPECT_TRUE(told_of("gate down"));
  EXPECT_THAT(publisher_.messages.back().body, HasSubstr("waits for gpu"));
  start_dock();
  start_link();
  pass(8s);
  EXPECT_TRUE(told_of("gate/person new"));
}

TEST_F(LinkTest, ALinkThatIsCutIsMadeAnewAndTheCameraGoesOn) {
  start_gate();
  pass(4s);
  ASSERT_TRUE(told_of("gate up"));
  cut("cam", "gpu");
  pass(6s);
  EXPECT_THAT(log_.str(), HasSubstr("link: gpu cannot be reached: the way for its pixels ended: silence"));
  EXPECT_EQ(told("status/").back(), "gate down");
  const std::size_t encoded = encoder_.frames;
  pass(2s);
  EXPECT_EQ(encoder_.frames, encoded);
  mend();
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_GT(encoder_.frames, encoded);
}

TEST_F(LinkTest, ANodeThatIsGoneLeavesItsCamerasUnwatched) {
  start_gate();
  pass(4s);
  caf::anon_send(dock_, actors::stop_atom_v);
  pass(1s);
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_FALSE(outcome().has_value()) << "another node may come";
}

TEST_F(LinkTest, ACameraThatIsTakenAwayEndsAlthoughNobodyServesIt) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_gate();
  pass(4s);
  cut("cam", "gpu");
  pass(6s);
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{});
  pass(2s);
  EXPECT_EQ(board_.cameras().size(), 0U);
  // And may be given back.
  mend();
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{{owned("gate", 7)}});
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
}

TEST_F(LinkTest, ACameraThatIsRefusedWhileItRunsIsComputedNoMoreUntilItIsAdmittedAgain) {
  start_gate();
  pass(4s);
  ASSERT_EQ(told("status/").back(), "gate up");
  ASSERT_THAT(far_metrics_.text(), HasSubstr("camera=\"gate\""));
  refuse("gate", 5);
  pass(2s);
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_THAT(publisher_.messages.back().body, HasSubstr("refused: no room"));
  EXPECT_THAT(far_metrics_.text(), Not(HasSubstr("camera=\"gate\""))) << "its dock has let it go";
  const std::size_t encoded = encoder_.frames;
  const std::size_t states = told("status/").size();
  pass(5s);
  EXPECT_EQ(encoder_.frames, encoded);
  EXPECT_EQ(told("status/").size(), states) << "it is told once";

  plan({owned("gate", 5)});
  pass(4s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_GT(encoder_.frames, encoded + 4);
  EXPECT_EQ(told("status/").size(), states + 1);
}

TEST_F(LinkTest, ACameraThatIsRefusedAndAdmittedWithOtherSettingsIsOpenedAnew) {
  for (int i = 0; i < 3; ++i) sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  ASSERT_EQ(told("status/").back(), "gate up");
  refuse("gate", 5, 4s);
  pass(4s);
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_THAT(far_metrics_.text(), Not(HasSubstr("camera=\"gate\"")));
  const std::size_t encoded = encoder_.frames;
  pass(4s);
  EXPECT_EQ(encoder_.frames, encoded) << "nor is it once it is opened anew";
  plan({owned("gate", 5)});
  pass(4s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_GT(encoder_.frames, encoded + 4);
}

TEST_F(LinkTest, ACameraThatIsRefusedFromTheStartIsReadAllTheSame) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({});
  start_link();
  refuse("gate", 5);
  pass(2s);
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_THAT(publisher_.messages.back().body, HasSubstr("refused: no room"));
  EXPECT_GT(metric("vigil_frames_total"), 2);
  EXPECT_EQ(encoder_.frames, 0U);
  plan({owned("gate", 5)});
  pass(8s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_GT(encoder_.frames, 10U);
}

TEST_F(LinkTest, ACameraThatHasNoPlaceYetIsOpenedOnceItHasOne) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5, "")});
  start_link();
  pass(3s);
  EXPECT_EQ(board_.cameras().at("gate"), actors::CameraState::connecting);
  EXPECT_THAT(told("status/"), IsEmpty()) << "nothing is wrong with it";
  plan({owned("gate", 5)});
  pass(3s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_FALSE(told_of("gate down"));
}

TEST_F(LinkTest, ACameraThatComesBackBeforeItsEndHasComeOutBeginsBehindThat) {
  start_node({});
  start_dock();
  std::vector<std::string> heard;
  const link_actor other = testing::link_by_hand(system_, heard);
  pass(1s);
  caf::send_as(caf::actor_cast<caf::actor>(other), dock_, attach_atom_v, std::string("cam"),
               std::string("gpu"), std::string("gpu"));
  pass(100ms);
  actors::WatchSettings watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(near_.send("gpu", write(JoinFrame{watch, 0, "gpu"})));
  pass(1s);
  EXPECT_THAT(heard, ElementsAre("room for gate"));
  heard.clear();
  // At once, so that the device has not heard of the end when the camera joins.
  ASSERT_TRUE(near_.send("gpu", write(EndFrame{"gate", "gpu"})));
  ASSERT_TRUE(near_.send("gpu", write(JoinFrame{watch, 1, "gpu"})));
  pass(1s);
  EXPECT_THAT(heard, ElementsAre("room for gate"));
  heard.clear();
  ASSERT_TRUE(near_.send("gpu", write(EndFrame{"gate", "gpu"})));
  pass(1s);
  EXPECT_THAT(heard, ElementsAre("over gate"));
}

TEST_F(LinkTest, AHigherFenceTakesTheCameraAndTheFormerOwnerIsRefused) {
  start_gate();
  pass(4s);
  // Another camera node, by hand.
  std::vector<std::string> heard;
  OtherCameraNode other(*this, heard);
  actors::WatchSettings watch = actors::watch_of(*owned("gate", 6), actors::version_of(6, 1));
  ASSERT_TRUE(other.join(watch));
  std::size_t encoded = encoder_.frames;
  pass(2s);
  EXPECT_THAT(heard, ::testing::UnorderedElementsAre("room for gate", "window of gate"));
  EXPECT_THAT(log_.str(), HasSubstr("link: gpu does not serve camera gate: its owner is node cam2 now"));
  EXPECT_GT(encoder_.frames, encoded) << "until the next one brings something";
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  // For longer than its credit.
  encoded = encoder_.frames;
  pass(20s);
  EXPECT_GE(encoder_.frames, encoded + 36);
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  heard.clear();
  ASSERT_TRUE(other.bring(watch, 100));
  pass(1s);
  EXPECT_THAT(heard, ::testing::Contains("ack ")) << "it is encoded";

  EXPECT_THAT(fences_, ElementsAre(std::pair(std::string("gate"), 6U))) << "whatever its node's plan says";
  auto seen = waiter_->request(dock_, caf::infinite, fence_atom_v);
  settle();
  seen.receive([](std::uint64_t fence) { EXPECT_EQ(fence, 6U); },
               [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });

  // What the former owner still sends changes nothing, and it hears why.
  encoded = encoder_.frames;
  pass(4s);
  EXPECT_EQ(encoder_.frames, encoded);
  EXPECT_GT(metric("vigil_frames_dropped_total"), 0);
  // Told so by the plan as well, it lets the camera go.
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{});
  pass(2s);
  EXPECT_EQ(board_.cameras().size(), 0U);
  // Nor does it when it joins again.
  watch.version = actors::version_of(5, 9);
  heard.clear();
  ASSERT_TRUE(other.join(watch));
  pass(1s);
  EXPECT_THAT(heard, ElementsAre(HasSubstr("refused its owner is another node by now (fence 6)")));
}

TEST_F(LinkTest, AWindowThatIsUnderWayWhenTheOwnerChangesIsTheNextOwners) {
  start_gate();
  pass(4s);
  std::vector<std::string> heard;
  OtherCameraNode other(*this, heard);
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 6), actors::version_of(6, 1));
  // While the device answers, so that its news finds another owner.
  bool joined = false;
  language_.passes.on_ask = [&](std::size_t) {
    if (std::exchange(joined, true)) return;
    auto arrival = std::make_shared<BulkArrival>();
    arrival->node = "cam2";
    arrival->received.message = write(JoinFrame{watch, 0, "gpu"});
    caf::anon_send<caf::message_priority::high>(dock_, BulkArrivalPtr(std::move(arrival)));
  };
  for (int i = 0; i < 100 && !joined; ++i) pass(50ms);
  language_.passes.on_ask = {};
  ASSERT_TRUE(joined);
  EXPECT_THAT(heard, ::testing::Contains("window of gate"));
  EXPECT_THAT(far_metrics_.text(), Not(HasSubstr("outcome=\"undelivered\"} 1")));
}

TEST_F(LinkTest, ADockEndsWithAPartOfIt) {
  start_dock();
  start_node({});
  auto* const actor = caf::actor_cast<caf::abstract_actor*>(dock_);
  const dock_state& own = static_cast<dock_actor::stateful_pointer<dock_state>>(actor)->state;
  caf::anon_send_exit(own.router, caf::exit_reason::kill);
  pass(1s);
  EXPECT_TRUE(actor->getf(caf::abstract_actor::is_cleaned_up_flag));
  EXPECT_THAT(log_.str(), HasSubstr("dock: ends, since a part of it has failed"));
}

TEST_F(LinkTest, AnOwnerThatWasRefusedJoinsAgainWhenItIsGivenAHigherFence) {
  start_gate();
  pass(4s);
  // Another camera node, by hand.
  std::vector<std::string> heard;
  OtherCameraNode other(*this, heard);
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 6), actors::version_of(6, 1));
  ASSERT_TRUE(other.join(watch));
  pass(1s);
  EXPECT_THAT(heard, ::testing::Contains("room for gate"));
  ASSERT_TRUE(other.bring(watch, 100));
  pass(1s);
  EXPECT_THAT(log_.str(), HasSubstr("link: gpu does not serve camera gate: its owner is node cam2 now"));

  // It never heard that it was another's, as one that was away.
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{{owned("gate", 7)}});
  pass(2s);
  EXPECT_THAT(heard, ::testing::Contains(HasSubstr("refused its owner is node cam now")));
  const std::size_t encoded = encoder_.frames;
  pass(4s);
  EXPECT_GT(encoder_.frames, encoded);
}

TEST_F(LinkTest, WhatIsNotAFullPatchOfTheOwnerBeforeIsTheNextOnesToBring) {
  start_dock();
  std::vector<std::string> heard;
  OtherCameraNode other(*this, heard);
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(other.join(watch));
  pass(200ms);
  ASSERT_TRUE(other.bring(watch, 0, 1));
  pass(1s);
  EXPECT_EQ(encoder_.frames, 1U) << "as at the end of a file";
  // The next one has not found the camera yet.
  start_node({owned("gate", 6)});
  start_link();
  pass(1s);
  EXPECT_THAT(heard, ::testing::Contains("refused its owner is node cam now"));
  ASSERT_TRUE(other.bring(watch, 1));
  ASSERT_TRUE(other.bring(watch, 2, 1));
  pass(1s);
  EXPECT_EQ(encoder_.frames, 3U);
  EXPECT_THAT(heard, ::testing::Contains("ack fenced").Times(1));
  // It has let it go.
  ASSERT_TRUE(other.port.send("gpu", write(EndFrame{"gate", "gpu"})));
  ASSERT_TRUE(other.bring(watch, 3));
  pass(1s);
  EXPECT_EQ(encoder_.frames, 3U);
  EXPECT_THAT(heard, ::testing::IsSupersetOf({"over gate", "ack fenced"}));
}

/// The registry was set back, and has given the camera's fence once more.
TEST_F(LinkTest, AnOwnerHearsOfItsOwnFenceOnlyWhereAnotherOneHasTheCameraByIt) {
  start_dock();
  std::vector<std::string> heard;
  OtherCameraNode other(*this, heard);
  cluster::MemoryBulk& port = other.port;
  const actors::WatchSettings watch = actors::watch_of(*owned("gate", 5), actors::version_of(5, 1));
  ASSERT_TRUE(port.send("gpu", write(JoinFrame{watch, 0, "gpu"})));
  pass(1s);
  ASSERT_THAT(heard, ::testing::Contains("room for gate"));
  ASSERT_TRUE(port.send("gpu", write(EndFrame{"gate", "gpu"})));
  pass(1s);
  ASSERT_THAT(heard, ::testing::Contains("over gate"));
  heard.clear();
  // The dock knows this fence as that of whoever sends it.
  ASSERT_TRUE(port.send("gpu", write(SettingsFrame{watch})));
  pass(1s);
  EXPECT_THAT(heard, IsEmpty());

  ASSERT_TRUE(port.send("gpu", write(JoinFrame{watch, 1, "gpu"})));
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  EXPECT_THAT(fences_, ::testing::Contains(std::pair(std::string("gate"), std::uint64_t{5})));
  fences_.clear();
  ASSERT_TRUE(near_.send("gpu", write(SettingsFrame{watch})));
  pass(1s);
  EXPECT_THAT(fences_, ElementsAre(std::pair(std::string("gate"), std::uint64_t{5}))) << "of the other one";
}

}  // namespace
}  // namespace vigil::fleet
