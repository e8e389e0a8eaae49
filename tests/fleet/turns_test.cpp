// A camera whose stream moves from one node that computes to another, with all that lies between, under the
// deterministic scheduler: every window is told, and once.
#include <gmock/gmock.h>

#include "fleet/dock/dock_actor.h"
#include "fleet/link/link_actor.h"
#include "fleet/turns/turns_actor.h"
#include "tests/fleet/camera_node.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::testing::frames;
using actors::testing::slot;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TurnsTest : public testing::CameraNodeTest {
 protected:
  /// A node that computes, its link, and what lies between.
  struct Computing {
    Computing(TurnsTest& test, const std::string& own)
        : name(own),
          board(test.clock_),
          near({.name = "cam"}, "cam-" + own + ":1", "", near_owner, test.network_),
          far({.name = own}, own + ":1", "", far_owner, test.network_) {
      near.set_peers({{own, own + ":1"}});
      far.set_peers({{"cam", "cam-" + own + ":1"}});
    }

    std::string name;
    actors::testing::FakeEncoder encoder;
    actors::testing::ScriptedLanguage language;
    actors::Metrics metrics;
    actors::StatusBoard board;
    testing::Owner near_owner;
    testing::Owner far_owner;
    cluster::MemoryBulk near;
    cluster::MemoryBulk far;
    dock_actor dock_;
    link_actor link_;
  };

  void TearDown() override {
    PipelineTest::TearDown();
    for (Computing* const each : {&old_, &new_}) stop(*each);
    caf::anon_send(turns_, actors::stop_atom_v);
    pass(1s);
  }

  void stop(Computing& each) {
    if (each.link_) caf::anon_send(each.link_, actors::stop_atom_v);
    if (each.dock_) caf::anon_send(each.dock_, actors::stop_atom_v);
    each.near_owner = {};
    each.far_owner = {};
  }

  /// Its camera tells every window.
  void start() {
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
    start_node({});
    const actors::Stages own = stages();
    turns_ = system_.spawn(
        turns, TurnsDeps{logger_, [this](const std::set<std::uint64_t>& over) { filled_ = over; }},
        own.alerts);
    place("old");
    run(old_);
    pass(12s);
    ASSERT_EQ(told("status/").back(), "gate up");
    ASSERT_GE(windows().size(), 4U);
    states_ = told("status/").size();
  }

  void run(Computing& each) {
    DockDeps deps{.node = each.name,
                  .devices = {slot(each.encoder, each.language)},
                  .group = 2,
                  .clock = clock_,
                  .metrics = each.metrics,
                  .board = each.board,
                  .logger = logger_,
                  .threads = actors::Threads::scheduled};
    each.dock_ = system_.spawn(dock, std::move(deps));
    each.far_owner.on_arrival = [&each](const BulkArrivalPtr& arrival) {
      caf::anon_send(each.dock_, arrival);
    };
    each.far_owner.on_news = [&each](const BulkNews& news) { caf::anon_send(each.dock_, news); };
    pass(100ms);
    const actors::Stages own = stages();
    each.link_ = system_.spawn(
        link,
        LinkDeps{"cam", each.name, each.name,
                 [&each](const cluster::BulkMessage& message) { return each.near.send(each.name, message); },
                 2, clock_, metrics_, logger_, node_actor(), turns_},
        each.dock_, each.dock_, own.router, own.alerts, actors::device_listener_actor(supervisor_));
    each.near_owner.on_news = [&each](const BulkNews& news) { caf::anon_send(each.link_, news); };
    if (each.near.counters().at(each.name).outgoing.open)
      caf::anon_send(each.link_, BulkNews{each.name, BulkNews::What::opened});
    pass(200ms);
  }

  /// By the plan, as its node does it.
  void place(const std::string& device, const std::string& former = "", std::uint64_t fence = 0) {
    send_plan(device, former, fence);
    pass(100ms);
  }
  /// Nothing of it is done yet. With another stride than before, the camera is opened anew.
  void send_plan(const std::string& device, const std::string& former = "", std::uint64_t fence = 0,
                 base::Duration stride = 2s) {
    auto settings = std::make_shared<actors::OwnCamera>(*owned("gate", 5, device));
    settings->tenure.former = former;
    settings->stream.window.stride = stride;
    settings->rules[0].threshold = 0;
    settings->rules[0].confirm = {1, 1};
    settings->rules[0].max_per_hour = 100'000;
    caf::anon_send<caf::message_priority::high>(
        turns_, std::make_shared<const Places>(Places{{"gate", {device, former, fence}}}));
    if (former.empty() && device == "new" && old_.link_)
      caf::anon_send(old_.link_, moved_atom_v, std::string("gate"), false);
    caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{{settings}});
  }

  /// So many messages, wherever they go.
  void run_steps(int steps) {
    for (int i = 0; i < steps; ++i) {
      if (scheduler().try_run_once()) continue;
      network_.step();
      for (auto& arrive : std::exchange(wire_, {})) arrive();
    }
  }

  struct Told {
    int number = 0;
    int frames = 0;
    double end = 0;
  };
  std::vector<Told> windows() const {
    std::vector<Told> all;
    for (const auto& message : publisher_.messages) {
      if (!message.topic.starts_with("alert/")) continue;
      const auto data = nlohmann::json::parse(message.body).at("data");
      if (data.at("phase") == "end") continue;
      const std::string end = data.at("window").at("end");
      const double seconds = std::stod(end.substr(14, 2)) * 60 + std::stod(end.substr(17, 6));
      all.push_back({data.at("confirmations"), data.at("window").at("frames"), seconds});
    }
    return all;
  }
  /// Each window of a stride of 2 s once, in order, and full from the third on.
  void expect_all() const {
    const std::vector<Told> all = windows();
    for (std::size_t i = 1; i < all.size(); ++i) {
      EXPECT_NEAR(all[i].end - all[i - 1].end, 2, 0.6) << i;
      EXPECT_EQ(all[i].number, all[i - 1].number + 1);
      EXPECT_EQ(all[i].frames, i > 1 ? 8 : all[i].frames) << i;
    }
  }

  turns_actor turns_;
  std::set<std::uint64_t> filled_;
  /// That were told before it moves.
  std::size_t states_ = 0;
  Computing old_{*this, "old"};
  Computing new_{*this, "new"};
};

TEST_F(TurnsTest, WhatWasToEndWhereItIsNotAnyMoreEndsWhereItIs) {
  start();
  run(new_);
  // It does not hear of the end.
  old_.far_owner.on_arrival = [](const BulkArrivalPtr&) {};
  plan({});
  pass(1s);
  const std::size_t before = windows().size();
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
  place("new");
  pass(10s);
  EXPECT_GT(windows().size(), before) << "it begins anew there";
}

TEST_F(TurnsTest, AStreamThatMovesLosesNoWindow) {
  start();
  run(new_);
  place("new", "old", 7);
  pass(2s);
  EXPECT_THAT(filled_, IsEmpty());
  EXPECT_GT(new_.encoder.frames, 0U) << "it gets the patches, too";
  pass(8s);
  EXPECT_THAT(filled_, ElementsAre(7U));
  place("new");
  const std::size_t encoded = old_.encoder.frames;
  stop(old_);
  pass(10s);
  EXPECT_EQ(old_.encoder.frames, encoded);
  EXPECT_GE(windows().size(), 13U);
  expect_all();
  EXPECT_EQ(told("status/").size(), states_) << "it was watched all the time";
}

TEST_F(TurnsTest, WhereTheOtherOneDiesTheFormerGoesOn) {
  start();
  run(new_);
  place("new", "old", 7);
  pass(3s);
  caf::anon_send(new_.dock_, actors::stop_atom_v);
  pass(8s);
  EXPECT_THAT(filled_, IsEmpty());
  EXPECT_GE(windows().size(), 9U);
  expect_all();
  EXPECT_EQ(told("status/").size(), states_);
}

TEST_F(TurnsTest, WhereTheFormerDiesTheOtherOneCountsAtOnce) {
  start();
  run(new_);
  place("new", "old", 7);
  pass(3s);
  caf::anon_send(old_.dock_, actors::stop_atom_v);
  const std::size_t before = windows().size();
  pass(3s);
  EXPECT_GT(windows().size(), before) << "with what it has";
  pass(8s);
  EXPECT_THAT(filled_, ElementsAre(7U));
  const std::vector<Told> all = windows();
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GT(all[i].end, all[i - 1].end + 1) << "none twice";
  EXPECT_EQ(told("status/").size(), states_);
}

/// Between two plans, so many messages are worked off.
class TurnsBetweenPlansTest : public TurnsTest, public ::testing::WithParamInterface<int> {
 protected:
  /// It is opened anew at the old node, and its stream moves while it is.
  void open_anew_and_move(const std::string& former, std::uint64_t fence) {
    start();
    run(new_);
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(1000, 90)));
    send_plan("old", "", 0, 4s);
    run_steps(GetParam());
    send_plan("new", former, fence, 4s);
    pass(12s);
    EXPECT_EQ(told("status/").back(), "gate up");
    const std::size_t before = windows().size();
    const std::size_t encoded = new_.encoder.frames;
    pass(8s);
    EXPECT_EQ(windows().size(), before + 2) << "of strides of 4 s";
    EXPECT_GT(new_.encoder.frames, encoded + 8);
  }
};

TEST_P(TurnsBetweenPlansTest, ACameraThatIsOpenedAnewComesUpWhereItsStreamHasMovedTo) {
  open_anew_and_move("", 0);
}

TEST_P(TurnsBetweenPlansTest, ACameraThatIsOpenedAnewComesUpWhileItsStreamMoves) {
  open_anew_and_move("old", 7);
}

INSTANTIATE_TEST_SUITE_P(Messages, TurnsBetweenPlansTest, ::testing::Range(0, 40));

}  // namespace
}  // namespace vigil::fleet
