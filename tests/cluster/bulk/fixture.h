// Nodes of a fleet in one of the worlds, for all tests of a port.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/cluster/bulk/worlds.h"

namespace vigil::cluster::testing {

struct Kind {
  std::string name;
  std::function<std::unique_ptr<World>()> make;
};

class BulkPortTest : public ::testing::TestWithParam<Kind> {
 protected:
  static BulkOptions options(const std::string& name, BulkLimits limits = {}) {
    return {.name = name,
            .limits = limits,
            .heartbeat = std::chrono::milliseconds(100),
            .silence = std::chrono::milliseconds(1500),
            .handshake = std::chrono::milliseconds(1500),
            .first_pause = std::chrono::milliseconds(10),
            .longest_pause = std::chrono::milliseconds(200),
            .seed = std::hash<std::string>()(name)};
  }

  struct Node {
    Heard heard;
    std::unique_ptr<BulkPort> port;
  };

  void start(Node& node, const BulkOptions& with, const std::vector<std::string>& peers) {
    node.port = world_->port(with, node.heard);
    list(node, peers);
  }
  void list(Node& node, const std::vector<std::string>& peers) {
    std::vector<BulkPeer> listed;
    for (const std::string& each : peers) listed.push_back(world_->peer(each));
    node.port->set_peers(listed);
  }
  /// Two that know each other.
  void start_both(BulkLimits limits_a = {}, BulkLimits limits_b = {}) {
    start(a_, options("a", limits_a), {"b"});
    start(b_, options("b", limits_b), {"a"});
    ASSERT_TRUE(open(a_, "b") && open(b_, "a"));
  }
  /// Waits until both streams stand for the node, however often they did.
  bool open(const Node& node, const std::string& peer) {
    return world_->until([&] {
      const BulkCounters counters = node.port->counters()[peer];
      return counters.outgoing.open && counters.incoming.open;
    });
  }
  /// Sends it as soon as it is taken.
  BulkSent deliver(Node& node, const std::string& peer, const BulkMessage& message) {
    BulkSent sent;
    world_->until([&] {
      sent = node.port->send(peer, message);
      return sent.answer != BulkSent::Answer::no_credit && sent.answer != BulkSent::Answer::no_stream;
    });
    return sent;
  }
  bool wait_count(const Node& node, const std::string& peer, std::size_t count) {
    return world_->until([&] { return node.heard.count(peer) >= count; });
  }
  bool wait_reset(const Node& node, const std::string& peer, BulkDirection direction, BulkEnd why) {
    return world_->until([&] {
      const auto resets = node.heard.resets(peer, direction);
      return std::any_of(resets.begin(), resets.end(),
                         [&](const BulkReset& each) { return each.why == why; });
    });
  }
  /// Whether messages go both ways, whatever was before.
  void expect_exchange(Node& one, const std::string& its_name, Node& other, const std::string& others_name) {
    const std::string text = "exchange " + std::to_string(++exchanges_);
    const auto got = [&](const Node& node) {
      const auto all = node.heard.all();
      return std::any_of(all.begin(), all.end(), [&](const Copied& each) { return each.header == text; });
    };
    EXPECT_TRUE(deliver(one, others_name, {text, {made_bytes(1, 20 * kKiB)}}));
    EXPECT_TRUE(deliver(other, its_name, {text, {made_bytes(2, 20 * kKiB)}}));
    EXPECT_TRUE(world_->until([&] { return got(one) && got(other); }));
  }

  std::unique_ptr<World> world_ = GetParam().make();
  int exchanges_ = 0;
  Node a_;
  Node b_;
  Node c_;
};

inline const Kind kPlainSockets{"sockets", [] { return std::make_unique<SocketWorld>(false); }};
inline const Kind kCurveSockets{"curve", [] { return std::make_unique<SocketWorld>(true); }};
inline const Kind kPlainMemory{"memory", [] { return std::make_unique<MemoryWorld>(false); }};
inline const Kind kKeysMemory{"memory_with_keys", [] { return std::make_unique<MemoryWorld>(true); }};
inline std::string name_of_kind(const ::testing::TestParamInfo<Kind>& each) {
  return each.param.name;
}

}  // namespace vigil::cluster::testing
