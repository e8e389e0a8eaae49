// Cameras of one node and the device of another, with all that lies between, under the deterministic
// scheduler.
#include <gmock/gmock.h>

#include "cluster/bulk/memory_bulk.h"
#include "fleet/dock/dock_actor.h"
#include "fleet/link/link_actor.h"
#include "tests/actors/pipeline.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::camera;
using actors::testing::frames;
using actors::testing::PipelineTest;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What a node does with what its port hears.
class Owner final : public cluster::BulkOwner {
 public:
  void received(const std::string& peer, cluster::BulkReceived received) override {
    if (on_arrival) on_arrival(std::make_shared<BulkArrival>(BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell({peer, BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction, std::uint64_t incarnation) override {
    tell({peer, BulkNews::What::opened, direction, incarnation});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell({peer, BulkNews::What::ended, reset.direction, 0, std::string(name_of(reset.why))});
  }
  void tell(const BulkNews& news) {
    if (on_news) on_news(news);
  }

  std::function<void(const BulkArrivalPtr&)> on_arrival;
  std::function<void(const BulkNews&)> on_news;
};

class LinkTest : public PipelineTest {
 protected:
  LinkTest() {
    config_.add_message_types<caf::id_block::vigil_fleet>();
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

  std::vector<actors::DeviceSlot> devices() override { return {}; }

  void start_node(std::vector<actors::CameraPtr> cameras) {
    supervisor_ =
        system_.spawn(actors::supervisor, actors::PipelineDeps{.cameras = {},
                                                               .once = false,
                                                               .grace = 10s,
                                                               .retention = 24h,
                                                               .model_id = "fake",
                                                               .open = sources_.factory(),
                                                               .shape = {2, {}},
                                                               .devices = {},
                                                               .devices_elsewhere = true,
                                                               .outbox = *outbox_,
                                                               .publisher = publisher_,
                                                               .metrics = metrics_,
                                                               .board = board_,
                                                               .clock = clock_,
                                                               .logger = logger_,
                                                               .seed = 1,
                                                               .threads = actors::Threads::scheduled});
    caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{std::move(cameras)});
    pass(100ms);
  }

  void start_dock() {
    DockDeps deps{.devices = {slot(encoder_, language_)},
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
    actors::Stages stages;
    auto asked = waiter_->request(supervisor_, caf::infinite, actors::stages_atom_v);
    settle();
    asked.receive([&](const actors::Stages& all) { stages = all; },
                  [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    link_ = system_.spawn(
        link,
        LinkDeps{"cam", "gpu",
                 [this](const cluster::BulkMessage& message) { return near_.send("gpu", message); }, 2,
                 clock_, metrics_, logger_, node_},
        dock_, stages.router, stages.alerts, actors::device_listener_actor(supervisor_));
    near_owner_.on_news = [this](const BulkNews& news) { caf::anon_send(link_, news); };
    // What the port heard before there was anybody to tell.
    if (near_.counters().at("gpu").outgoing.open)
      caf::anon_send(link_, BulkNews{"gpu", BulkNews::What::opened});
    pass(200ms);
  }

  /// Until nothing is on its way any more, on no wire.
  void settle() override {
    do {
      PipelineTest::settle();
      network_.step();
      for (auto& arrive : std::exchange(wire_, {})) arrive();
      PipelineTest::settle();
    } while (!wire_.empty());
  }

  bool told_of(const std::string& what) const {
    const auto all = told();
    return std::find(all.begin(), all.end(), what) != all.end();
  }

  static actors::CameraPtr owned(const std::string& name, std::uint64_t fence) {
    auto settings = camera(name, config::Pace::realtime, "/clips/" + name + ".mp4");
    settings->tenure = {fence, std::nullopt, "gpu"};
    return settings;
  }

  /// The link's own node, as far as a link deals with it.
  static node_actor::behavior_type hearing_node(node_actor::pointer self,
                                                std::vector<std::uint64_t>* fences) {
    return {[](greet_atom, const std::string&) { return std::string(); },
            [](dock_atom) { return caf::strong_actor_ptr(); },
            [](report_atom, const std::string&) { return std::string(); },
            [](find_atom, const std::string&) { return std::uint64_t{0}; },
            [](fetch_atom, const EvidenceWish&) {},
            [](const Piece& piece) { piece.run(); },
            [](const BulkNews&) {},
            [](const BulkArrivalPtr&) {},
            [](stand_atom) { return NodeStandingPtr(); },
            [fences](fence_atom, std::uint64_t fence) { fences->push_back(fence); },
            [](drain_atom) { return true; },
            [](tick_atom) {},
            [self](stop_atom) { self->quit(); }};
  }

  bool is_cut_ = false;
  std::vector<std::uint64_t> fences_;
  node_actor node_ = system_.spawn(hearing_node, &fences_);
  std::vector<std::function<void()>> wire_;
  cluster::MemoryBulkNetwork network_{
      clock_, [this](const std::string&, const std::string&, const cluster::Frames& frames,
                     const cluster::MemoryBulkNetwork::Arrive& arrive) {
        if (!is_cut_) wire_.push_back([frames, arrive] { arrive(frames); });
      }};
  Owner near_owner_;
  Owner far_owner_;
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
  pass(2s);
  EXPECT_TRUE(told_of("gate down"));
  EXPECT_THAT(publisher_.messages.back().body, HasSubstr("waits for gpu"));
  start_dock();
  start_link();
  pass(8s);
  EXPECT_TRUE(told_of("gate/person new"));
}

TEST_F(LinkTest, ALinkThatIsCutIsMadeAnewAndTheCameraGoesOn) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  ASSERT_TRUE(told_of("gate up"));
  is_cut_ = true;
  pass(6s);
  EXPECT_THAT(log_.str(), HasSubstr("link: gpu cannot be reached: the way for its pixels ended: silence"));
  EXPECT_EQ(told("status/").back(), "gate down");
  const std::size_t encoded = encoder_.frames;
  pass(2s);
  EXPECT_EQ(encoder_.frames, encoded);
  is_cut_ = false;
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
  EXPECT_GT(encoder_.frames, encoded);
}

TEST_F(LinkTest, ANodeThatIsGoneLeavesItsCamerasUnwatched) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  caf::anon_send(dock_, actors::stop_atom_v);
  pass(1s);
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_FALSE(outcome().has_value()) << "another node may come";
}

TEST_F(LinkTest, ACameraThatIsTakenAwayEndsAlthoughNobodyServesIt) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  is_cut_ = true;
  pass(6s);
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{});
  pass(2s);
  EXPECT_EQ(board_.cameras().size(), 0U);
  // And may be given back.
  is_cut_ = false;
  caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{{owned("gate", 7)}});
  pass(6s);
  EXPECT_EQ(told("status/").back(), "gate up");
}

TEST_F(LinkTest, AHigherFenceTakesTheCameraAndTheFormerOwnerIsRefused) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  start_dock();
  start_node({owned("gate", 5)});
  start_link();
  pass(4s);
  // Another camera node, by hand.
  std::vector<std::string> heard;
  const auto other = system_.spawn([&heard](link_actor::pointer) -> link_actor::behavior_type {
    return {
        [](join_atom, const actors::WatchPtr&, std::uint32_t) {},
        [](const actors::WatchPtr&) {},
        [](const actors::FramePatchPtr&) {},
        [](end_atom, const std::string&) {},
        [](grant_atom, std::uint32_t) {},
        [](const actors::Explain&) {},
        [](const actors::Done&) {},
        [](const actors::Returned&) {},
        [&heard](const GuestRoom& room) { heard.push_back("room for " + room.camera); },
        [&heard](const actors::PatchAck& ack) { heard.push_back("ack " + ack.reason); },
        [&heard](const GuestRefused& refused) { heard.push_back("refused " + refused.reason); },
        [&heard](const actors::WindowForm& form) { heard.push_back("window of " + form.watch.camera); },
        [](const actors::Explanation&) {},
        [](over_atom, const std::string&) {},
        [](const BulkNews&) {},
        [](moved_atom, const std::string&) {},
        [](tick_atom) {},
        [](stop_atom) {},
    };
  });
  Owner owner;
  cluster::MemoryBulk port({.name = "cam2"}, "cam2:1", "", owner, network_);
  port.set_peers({{"gpu", "gpu:1"}});
  far_.set_peers({{"cam", "cam:1"}, {"cam2", "cam2:1"}});
  pass(2s);
  caf::send_as(caf::actor_cast<caf::actor>(other), dock_, attach_atom_v, std::string("cam2"));
  pass(100ms);
  actors::WatchSettings watch = actors::watch_of(*owned("gate", 6), actors::version_of(6, 1));
  ASSERT_TRUE(port.send("gpu", write(JoinFrame{watch, 0})));
  pass(1s);
  EXPECT_THAT(heard, ::testing::Contains("room for gate"));
  EXPECT_THAT(log_.str(), HasSubstr("link: gpu does not serve camera gate: its owner is node cam2 now"));

  EXPECT_THAT(fences_, ElementsAre(6U)) << "whatever its node's plan says";
  auto seen = waiter_->request(dock_, caf::infinite, fence_atom_v);
  settle();
  seen.receive([](std::uint64_t fence) { EXPECT_EQ(fence, 6U); },
               [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });

  // What the former owner still sends changes nothing, and it hears why.
  const std::size_t encoded = encoder_.frames;
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
  ASSERT_TRUE(port.send("gpu", write(JoinFrame{watch, 0})));
  pass(1s);
  EXPECT_THAT(heard, ElementsAre(HasSubstr("refused its owner is another node by now (fence 6)")));
}

}  // namespace
}  // namespace vigil::fleet
