// Nodes that know each other by a registry in memory, under the deterministic scheduler.
#pragma once

#include <list>
#include <sstream>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "cluster/registry/memory_registry.h"
#include "fleet/messages/types.h"
#include "fleet/node/node_actor.h"
#include "fleet/status/fleet_status_actor.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet::testing {

using namespace std::chrono_literals;
using actors::testing::ManualClock;
using cluster::NodeRole;
using nlohmann::json;

/// A node's own: its time of day can be another than that of the others.
class NodeClock final : public base::Clock {
 public:
  explicit NodeClock(const base::Clock& of_all) : of_all_(of_all) {}
  TimePoint now() const override { return of_all_.now(); }
  WallTime wall() const override { return of_all_.wall() + ahead; }

  base::Duration ahead{0};

 private:
  const base::Clock& of_all_;
};

struct NodeTestConfig : caf::actor_system_config {
  NodeTestConfig() {
    set("scheduler.policy", caf::atom("testing"));
    fleet::know_messages(*this);
  }
};

/// Answers like a dock that has seen a fence.
inline dock_actor::behavior_type seasoned_dock(dock_actor::pointer self, std::uint64_t fence) {
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
inline gateway_actor::behavior_type seasoned_gateway(gateway_actor::pointer self,
                                                     const std::shared_ptr<std::uint64_t>& fence) {
  return {[](const MakerTalk&) { return GatewayTalk(); },
          [](const PeerQuestion&) { return PeerAnswer(); },
          [](const GatewayNewsPtr&) {},
          [](tick_atom) {},
          [fence](fence_atom) { return *fence; },
          [self](stop_atom) { self->quit(); }};
}

using mute_actor = greeter_actor;

/// Greets as the node does, and owes all other answers. `is_old`: answers, too, as a build did that did not
/// tell whom it reaches.
inline mute_actor::behavior_type mute_greeter(mute_actor::pointer self, const node_actor& node, bool is_old) {
  const auto owed = std::make_shared<std::vector<caf::typed_response_promise<std::string>>>();
  return {[self, node, is_old](greet_atom, const std::string& text) {
            json greeting = json::parse(text);
            if (is_old) greeting.erase("asks_whether_reached");
            return self->delegate(node, greet_atom_v, greeting.dump());
          },
          [](dock_atom) { return caf::strong_actor_ptr(); },
          [](gateway_atom) { return caf::strong_actor_ptr(); },
          [](past_atom) { return caf::strong_actor_ptr(); },
          [self, owed, node, is_old](report_atom, const std::string& query) -> caf::result<std::string> {
            if (is_old) return self->delegate(node, report_atom_v, query);
            owed->push_back(self->make_response_promise<std::string>());
            return owed->back();
          },
          [](find_atom, const std::string&) { return std::uint64_t{0}; },
          [](find_atom, past_atom, const std::string&) { return std::string(); },
          [](fetch_atom, const EvidenceWish&) {}};
}

class NodeTest : public ::testing::Test {
 protected:
  struct Node {
    Node(NodeTest& test, const std::string& own) : name(own), clock(test.clock_), board(clock) {
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
    NodeClock clock;
    actors::StatusBoard board;
    /// Why it cannot go on.
    std::string expelled = {};
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
              gateway_actor gateway = {}, maker_actor maker = {}, const std::string& incarnation = "1",
              actors::supervisor_actor supervisor = {}) {
    Node& node = nodes_.emplace_back(*this, name);
    cluster::NodeRecord record;
    record.name = name;
    record.incarnation = incarnation;
    record.roles = std::move(roles);
    record.state = cluster::NodeState::ready;
    record.model = model_;
    record.control = record.bulk = {told_.contains(name) ? told_.at(name) : name, 7400};
    NodeWays ways;
    ways.find = [this, name](const cluster::PeerAddress& address, auto done) {
      asked_[name].push_back(address.host);
      // Who is mute is known by what stands before it alone, and so is not to be met by its own greetings.
      if (lost_.contains(address.host) || mute_.contains(name)) return;
      const std::pair between = std::minmax(name, address.host);
      if (swallowed_.contains(between)) return;
      if (cut_.contains(between)) return done("nobody listens there");
      const std::string& host = hosts_.contains(address.host) ? hosts_.at(address.host) : address.host;
      for (const Node& each : nodes_)
        if (each.name == host) {
          if (!mute_.contains(each.name) && !old_.contains(each.name)) return done(greeter_actor(each.actor));
          mutes_.push_back(system_.spawn(mute_greeter, each.actor, old_.contains(each.name)));
          return done(greeter_actor(mutes_.back()));
        }
      done("nobody listens there");
    };
    ways.resolve = [this](const cluster::PeerAddress& address, auto done) {
      const auto known = addresses_.find(address.host);
      if (known == addresses_.end()) return done({address});
      std::vector<cluster::PeerAddress> all;
      for (const std::string& host : known->second) all.push_back({host, 0});
      done(all);
    };
    const auto settings = std::make_shared<config::Settings>();
    settings->cameras = cameras_;
    const auto configuration =
        std::make_shared<const ReadConfiguration>(ReadConfiguration{"c0ffee", settings, ""});
    node.actor = system_.spawn(
        fleet::node, NodeDeps{.fleet = "city",
                              .record = record,
                              .lease = 3000ms,
                              .seeds = seeds_,
                              .registry = *node.registry,
                              .ways = ways,
                              .configuration = configuration,
                              .resolve = [](auto camera) { return camera; },
                              .supervisor = std::move(supervisor),
                              .dock = std::move(dock),
                              .maker = std::move(maker),
                              .gateway = std::move(gateway),
                              .clock = node.clock,
                              .metrics = metrics_,
                              .board = node.board,
                              .logger = logger_,
                              .clips = clips_,
                              .cache = cache_,
                              .expelled = [&node](const std::string& why) { node.expelled = why; }});
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
  /// Of nodes that are started from now on.
  actors::cache_actor cache_;
  /// Nodes that say nothing after their greetings.
  std::set<std::string> mute_;
  /// Of a build that tells nobody whether it reaches him.
  std::set<std::string> old_;
  /// Under which hosts nodes say that they are reached, if not under their names; and at which of all hosts
  /// nothing is ever answered.
  std::map<std::string, std::string> told_;
  /// Of nodes that are started from now on; what names stand for, if not for themselves; and where each node
  /// has looked for others.
  std::string model_;
  std::vector<cluster::PeerAddress> seeds_;
  std::map<std::string, std::vector<std::string>> addresses_;
  std::map<std::string, std::vector<std::string>> asked_;
  /// And who is there under other names than their own.
  std::map<std::string, std::string> hosts_;
  std::set<std::string> lost_;
  /// Pairs, in their order by name: who finds nobody there, and who is never told.
  std::set<std::pair<std::string, std::string>> cut_, swallowed_;
  NodeTestConfig config_;
  caf::actor_system system_{config_};
  std::list<Node> nodes_;
  std::vector<mute_actor> mutes_;
  /// Of the nodes that are started.
  const actors::Clips* clips_ = nullptr;
};

inline const std::set<NodeRole> kComputes = {NodeRole::vision, NodeRole::stream, NodeRole::generate};

}  // namespace vigil::fleet::testing
