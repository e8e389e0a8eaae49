// A camera node, what lies between it and others, and how others hear their ports: under the deterministic
// scheduler.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cluster/bulk/memory_bulk.h"
#include "fleet/messages/messages.h"
#include "fleet/messages/types.h"
#include "tests/actors/pipeline.h"

namespace vigil::fleet::testing {

using namespace std::chrono_literals;

/// What a node does with what its port hears.
class Owner final : public cluster::BulkOwner {
 public:
  void received(const std::string& peer, cluster::BulkReceived received) override {
    if (on_arrival) on_arrival(std::make_shared<BulkArrival>(BulkArrival{peer, std::move(received)}));
  }
  void room(const std::string& peer) override { tell({peer, BulkNews::What::room}); }
  void opened(const std::string& peer, cluster::BulkDirection direction,
              std::uint64_t /*incarnation*/) override {
    tell({peer, BulkNews::What::opened, direction});
  }
  void reset(const std::string& peer, const cluster::BulkReset& reset) override {
    tell({peer, BulkNews::What::ended, reset.direction, std::string(name_of(reset.why))});
  }
  void tell(const BulkNews& news) {
    if (on_news) on_news(news);
  }

  std::function<void(const BulkArrivalPtr&)> on_arrival;
  std::function<void(const BulkNews&)> on_news;
};

class CameraNodeTest : public actors::testing::PipelineTest {
 protected:
  CameraNodeTest() { fleet::know_messages(config_); }

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
    plan(std::move(cameras));
  }

  /// These are its cameras from now on.
  void plan(std::vector<actors::CameraPtr> cameras) {
    caf::anon_send(supervisor_, actors::reload_atom_v, actors::CameraList{std::move(cameras)});
    pass(100ms);
  }

  /// Whom its links have to do with.
  actors::Stages stages() {
    actors::Stages stages;
    auto asked = waiter_->request(supervisor_, caf::infinite, actors::stages_atom_v);
    settle();
    asked.receive([&](const actors::Stages& all) { stages = all; },
                  [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return stages;
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

  /// Nothing passes between these two nodes any more; or between any.
  void cut(const std::string& one, const std::string& other) { cuts_.insert(std::minmax(one, other)); }
  void mend() { cuts_.clear(); }

  bool told_of(const std::string& what) const {
    const auto all = told();
    return std::find(all.begin(), all.end(), what) != all.end();
  }

  static actors::CameraPtr owned(const std::string& name, std::uint64_t fence,
                                 const std::string& device = "gpu") {
    auto settings = actors::testing::camera(name, config::Pace::realtime, "/clips/" + name + ".mp4");
    settings->tenure = {fence, std::nullopt, device};
    return settings;
  }

  std::set<std::pair<std::string, std::string>> cuts_;
  std::vector<std::function<void()>> wire_;
  cluster::MemoryBulkNetwork network_{
      clock_, [this](const std::string& from, const std::string& to, const cluster::Frames& frames,
                     const cluster::MemoryBulkNetwork::Arrive& arrive) {
        if (!cuts_.contains(std::minmax(from, to))) wire_.push_back([frames, arrive] { arrive(frames); });
      }};
};

/// A link of another camera node, by hand, that writes down what it hears.
inline link_actor link_by_hand(caf::actor_system& system, std::vector<std::string>& heard) {
  return system.spawn([&heard](link_actor::pointer) -> link_actor::behavior_type {
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
        [&heard](over_atom, const std::string& camera) { heard.push_back("over " + camera); },
        [](const BulkNews&) {},
        [](const TextsAt&) {},
        [](moved_atom, const std::string&, bool) {},
        [&heard](detach_atom, const std::string& reason) { heard.push_back("detach " + reason); },
        [](tick_atom) {},
        [](stop_atom) {},
    };
  });
}

}  // namespace vigil::fleet::testing
