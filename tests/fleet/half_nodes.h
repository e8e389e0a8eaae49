// Cameras of one node, and nodes that compute with halves of a model, with all that lies between, under the
// deterministic scheduler.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fleet/dock/dock_actor.h"
#include "fleet/link/link_actor.h"
#include "tests/actors/patches.h"
#include "tests/fleet/camera_node.h"

namespace vigil::fleet::testing {

using actors::testing::FakeEncoder;
using actors::testing::frames;
using actors::testing::ScriptedLanguage;

/// A node that computes with a half of the model.
struct HalfNode {
  HalfNode(const std::string& node, cluster::MemoryBulkNetwork& network, const base::Clock& clock)
      : name(node), port({.name = node}, node + ":1", "", owner, network), board(clock) {}

  const std::string name;
  Owner owner;
  cluster::MemoryBulk port;
  FakeEncoder encoder;
  ScriptedLanguage language;
  actors::Metrics metrics;
  actors::StatusBoard board;
  dock_actor dock;
};

class HalvesTest : public CameraNodeTest {
 protected:
  HalvesTest() {
    std::vector<cluster::BulkPeer> all = {{"cam", "cam:1"}, {"cam2", "cam2:1"}};
    for (const HalfNode* node : nodes_) all.push_back({node->name, node->name + ":1"});
    const auto list = [&](cluster::MemoryBulk& port, const std::string& name) {
      std::vector<cluster::BulkPeer> others = all;
      std::erase_if(others, [&](const auto& peer) { return peer.name == name; });
      port.set_peers(others);
    };
    list(cam_, "cam");
    list(cam2_, "cam2");
    for (HalfNode* node : nodes_) list(node->port, node->name);
    cam_owner_.on_news = [this](const BulkNews& news) {
      for (const auto& [device, link] : links_)
        if (device.starts_with(news.node)) caf::anon_send(link, news);
    };
  }

  void TearDown() override {
    PipelineTest::TearDown();
    for (const auto& [device, link] : links_) caf::anon_send(link, actors::stop_atom_v);
    for (HalfNode* node : nodes_)
      if (node->dock) caf::anon_send(node->dock, actors::stop_atom_v);
    cam_owner_ = cam2_owner_ = {};
    for (HalfNode* node : nodes_) node->owner = {};
    pass(1s);
  }

  void start_dock(HalfNode& node, const actors::EngineParts& engine,
                  std::function<actors::EngineParts()> again = {}) {
    DockDeps deps{.node = node.name,
                  .devices = {{"cpu", engine, std::move(again)}},
                  .group = 2,
                  .token_width = 1,
                  .clock = clock_,
                  .metrics = node.metrics,
                  .board = node.board,
                  .logger = logger_,
                  .threads = actors::Threads::scheduled};
    node.dock = system_.spawn(dock, std::move(deps));
    node.owner.on_arrival = [to = node.dock](const BulkArrivalPtr& arrival) { caf::anon_send(to, arrival); };
    node.owner.on_news = [to = node.dock](const BulkNews& news) { caf::anon_send(to, news); };
    pass(100ms);
  }
  static actors::EngineParts tower(HalfNode& node) {
    actors::EngineParts half = parts(node.encoder, node.language);
    half.desk = nullptr;
    half.questions = nullptr;
    return half;
  }
  static actors::EngineParts language(HalfNode& node) {
    actors::EngineParts half = parts(node.encoder, node.language);
    half.encoder = nullptr;
    return half;
  }
  void start_vision(HalfNode& node) { start_dock(node, tower(node)); }
  void start_stream(HalfNode& node) { start_dock(node, language(node)); }

  /// As the node of `from` does where its dock wants it.
  void make_way(HalfNode& from, const HalfNode& to) {
    caf::anon_send(from.dock,
                   DockWay{to.name, to.dock,
                           [&port = from.port, name = to.name](const cluster::BulkMessage& message) {
                             return port.send(name, message);
                           },
                           from.port.counters().at(to.name).outgoing.open});
    pass(100ms);
  }
  void start_link(HalfNode& vision, HalfNode& stream) {
    const actors::Stages own = stages();
    const std::string device = device_of(vision.name, stream.name);
    links_[device] = system_.spawn(
        link,
        LinkDeps{
            "cam", vision.name, stream.name,
            [this, &vision](const cluster::BulkMessage& message) { return cam_.send(vision.name, message); },
            2, clock_, metrics_, logger_},
        vision.dock, stream.dock, own.router, own.alerts, actors::device_listener_actor(supervisor_));
    if (cam_.counters().at(vision.name).outgoing.open)
      caf::anon_send(links_[device], BulkNews{vision.name, BulkNews::What::opened});
    pass(700ms);
  }

  /// A camera that one node reads, the second encodes, and the third answers.
  void start_gate(actors::CameraPtr gate = owned("gate", 5, "v1>s1")) {
    for (int i = 0; i < 3; ++i) sources_.add("/clips/gate.mp4", frames(std::vector<int>(4000, 90)));
    start_vision(v1_);
    start_stream(s1_);
    make_way(v1_, s1_);
    start_node({std::move(gate)});
    start_link(v1_, s1_);
    pass(6s);
    ASSERT_TRUE(told_of("gate up")) << log_.str();
    ASSERT_TRUE(told_of("gate/person new")) << log_.str();
  }
  static double answered(const HalfNode& node) {
    return number(node.metrics.text(), "vigil_windows_total{outcome=\"answered\"}");
  }
  static double number(const std::string& text, const std::string& series) {
    const auto at = text.find('\n' + series + ' ');
    return at == std::string::npos ? 0 : std::stod(text.substr(at + series.size() + 2));
  }
  bool goes_on(const HalfNode& at) {
    const double before = answered(at);
    pass(5s);
    return answered(at) >= before + 2;
  }
  /// Patches of the camera's stream so far, 0 if it has begun anew.
  static std::int64_t patches(HalfNode& at) {
    return at.language.desk.is_open("gate") ? at.language.desk.stream("gate").patches().last : 0;
  }

  Owner cam_owner_, cam2_owner_;
  cluster::MemoryBulk cam_{{.name = "cam"}, "cam:1", "", cam_owner_, network_};
  cluster::MemoryBulk cam2_{{.name = "cam2"}, "cam2:1", "", cam2_owner_, network_};
  HalfNode v1_{"v1", network_, clock_}, v2_{"v2", network_, clock_};
  HalfNode s1_{"s1", network_, clock_}, s2_{"s2", network_, clock_};
  std::vector<HalfNode*> nodes_ = {&v1_, &v2_, &s1_, &s2_};
  std::map<std::string, link_actor> links_;
};

}  // namespace vigil::fleet::testing
