// Nodes whose caches are a test's, a gateway, and a registry in memory.
#pragma once

#include <list>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/evidence/clip_index.h"
#include "cluster/registry/memory_registry.h"
#include "cluster/registry/memory_store.h"
#include "fleet/asks/asks_actor.h"
#include "fleet/messages/types.h"
#include "fleet/past/past_actor.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet::testing {

using namespace std::chrono_literals;
using actors::PastOutcome;
using nlohmann::json;

struct PastTestConfig : caf::actor_system_config {
  PastTestConfig() {
    set("scheduler.policy", caf::atom("testing"));
    fleet::know_messages(*this);
  }
};

/// What a cache hears of requests, and says at once to those of a list and of erasures.
struct PastCache {
  std::string tenant = "acme";
  std::vector<actors::PastRequestPtr> questions, erasures;
  std::vector<std::uint64_t> forgotten;
  actors::past_listener_actor asker;
  bool knows = true, fails = false;
};

inline actors::PastReplyPtr word(std::uint64_t ticket, PastOutcome outcome, std::string text,
                                 bool is_unknown = false) {
  auto reply = std::make_shared<actors::PastReply>();
  reply->ticket = ticket;
  reply->outcome = outcome;
  reply->text = std::move(text);
  reply->is_unknown = is_unknown;
  return reply;
}

inline json list_row(const std::string& tenant) {
  return {{"camera", "gate"}, {"tenant", tenant}, {"watched", true},
          {"keep_s", 60.0},   {"pages", 1},       {"bytes", {{"host", 1}, {"disk", 2}}},
          {"from", nullptr},  {"to", nullptr},    {"forms", json::array()}};
}

inline actors::cache_actor::behavior_type asked_cache(actors::cache_actor::pointer self, PastCache* cache) {
  return {[](actors::join_atom, const std::string&) {},
          [](const actors::WatchPtr&) {},
          [](actors::end_atom, const std::string&) {},
          [](const actors::KeepsPtr&) {},
          [](const actors::LeftPagesPtr&) {},
          [](const actors::ShownPtr&) {},
          [](const actors::RecalledPtr&) {},
          [self, cache](const actors::PastRequestPtr& request) {
            cache->asker = caf::actor_cast<actors::past_listener_actor>(self->current_sender());
            if (!cache->knows) {
              self->send(cache->asker,
                         word(request->ticket, PastOutcome::bad_request, "nothing is remembered", true));
            } else if (std::holds_alternative<actors::PastErasure>(request->what)) {
              cache->erasures.push_back(request);
              if (cache->fails) {
                self->send(cache->asker, word(request->ticket, PastOutcome::unavailable, "the disk is full"));
              } else {
                self->send(cache->asker, word(request->ticket, PastOutcome::answer, R"({"pages": 5})"));
              }
            } else if (std::holds_alternative<actors::PastList>(request->what)) {
              self->send(cache->asker, word(request->ticket, PastOutcome::answer,
                                            json{{"cameras", {list_row(cache->tenant)}}}.dump()));
            } else {
              cache->questions.push_back(request);
            }
          },
          [cache](actors::forget_atom, std::uint64_t ticket) { cache->forgotten.push_back(ticket); },
          [](const actors::ReadPagesPtr&) {},
          [](const actors::DiskNewsPtr&) {},
          [](actors::tick_atom) {},
          [self](actors::stop_atom) { self->quit(); }};
}

/// What a node says of clips.
struct PastClips {
  actors::ClipIndex kept;
  std::size_t asked = 0;
  /// It never answers; it answers as what it is not.
  bool owes = false;
  std::optional<std::string> instead;
  std::vector<caf::typed_response_promise<std::string>> owed;
};

/// As a node says what it knows, and who answers about its past.
inline node_actor::behavior_type past_node(node_actor::pointer self, past_actor past, bool remembers,
                                           const NodeStanding* standing, PastClips* clips) {
  self->send(past, stand_atom_v);
  return {[](greet_atom, const std::string&) { return std::string(); },
          [](dock_atom) { return caf::strong_actor_ptr(); },
          [](gateway_atom) { return caf::strong_actor_ptr(); },
          [past, remembers](past_atom) {
            return caf::actor_cast<caf::strong_actor_ptr>(remembers ? past : past_actor());
          },
          [](serves_atom, bool) {},
          [](keeps_atom, bool) {},
          [](const ReadConfigurationPtr&) {},
          [](way_atom, const std::string&) {},
          [](report_atom, const std::string&) { return std::string(); },
          [](find_atom, const std::string&) { return std::uint64_t{0}; },
          [self, clips](find_atom, past_atom, const std::string& text) -> caf::result<std::string> {
            ++clips->asked;
            if (clips->owes) {
              clips->owed.push_back(self->make_response_promise<std::string>());
              return clips->owed.back();
            }
            const auto wish = parse_clip_wish(text);
            if (clips->instead || !wish) return clips->instead.value_or("no wish");
            return print(found_of(*wish, &clips->kept));
          },
          [](fetch_atom, const EvidenceWish&) {},
          [](const Piece& piece) { piece.run(); },
          [](const BulkNews&) {},
          [](const BulkArrivalPtr&) {},
          [standing](stand_atom) { return std::make_shared<const NodeStanding>(*standing); },
          [](fence_atom, const std::string&, std::uint64_t) {},
          [](drain_atom) { return true; },
          [](tick_atom) {},
          [self](stop_atom) { self->quit(); }};
}

inline actors::past_listener_actor::behavior_type past_listener(actors::past_listener_actor::pointer self,
                                                                std::vector<actors::PastReply>* replies) {
  self->set_default_handler(caf::drop);
  return {[replies](const actors::PastReplyPtr& reply) { replies->push_back(*reply); }};
}

class PastActorTest : public ::testing::Test {
 protected:
  struct Node {
    std::string name;
    PastCache cache;
    PastClips clips;
    actors::cache_actor cached;
    past_actor past;
    node_actor owner;
    std::unique_ptr<actors::Metrics> metrics;
    /// Erasures that wait, as it tells.
    std::string waiting() const {
      const std::string text = metrics->text(), line = "\nvigil_past_erasures_waiting ";
      const std::size_t at = text.find(line);
      return at == std::string::npos ? "" : text.substr(at + line.size(), 1);
    }
  };

  PastActorTest() : logger_("past", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)) {
    logger_.set_pattern("%l %v");
  }
  ~PastActorTest() override {
    standing_.ways.clear();
    for (Node& node : nodes_) end(node);
    caf::anon_send_exit(listener_, caf::exit_reason::kill);
    settle();
    for (Node& node : nodes_) {
      node.past = past_actor();
      node.cached = actors::cache_actor();
      node.clips.owed.clear();
      node.cache.asker = actors::past_listener_actor();
    }
    listener_ = actors::past_listener_actor();
    settle();
  }

  Node& node(const std::string& name, bool remembers, bool has_disk = true) {
    Node& node = nodes_.emplace_back();
    node.name = name;
    start(node, remembers, has_disk);
    return node;
  }
  void start(Node& node, bool remembers, bool has_disk = true) {
    if (remembers) node.cached = system_.spawn(asked_cache, &node.cache);
    // Of this run.
    node.metrics = std::make_unique<actors::Metrics>();
    node.past = system_.spawn(fleet::past, PastDeps{.fleet = "city",
                                                    .node = node.name,
                                                    .incarnation = node.name + "x" + std::to_string(++runs_),
                                                    .cache = node.cached,
                                                    .has_disk = has_disk,
                                                    .is_gateway = !remembers,
                                                    .registry = registry_,
                                                    .clock = clock_,
                                                    .logger = logger_,
                                                    .metrics = *node.metrics});
    node.owner = system_.spawn(past_node, node.past, remembers, &standing_, &node.clips);
    cluster::NodeRecord record;
    record.name = node.name;
    record.roles = {remembers ? cluster::NodeRole::stream : cluster::NodeRole::gateway};
    standing_.nodes[node.name] = record;
    standing_.ways[node.name] = greeter_actor(node.owner);
    settle();
  }
  void end(Node& node) {
    standing_.ways.erase(node.name);
    standing_.nodes.erase(node.name);
    if (node.past) caf::anon_send(node.past, actors::stop_atom_v);
    if (node.owner) caf::anon_send(node.owner, actors::stop_atom_v);
    if (node.cached) caf::anon_send(node.cached, actors::stop_atom_v);
    node.owner = node_actor();
    settle();
  }
  void settle() {
    while (scheduler().try_run_once()) {
    }
  }
  void pass(base::Duration time) {
    for (base::Duration gone{0}; gone < time; gone += 250ms) {
      clock_.advance(250ms);
      scheduler().advance_time(250ms);
      settle();
    }
  }
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }
  void ask(Node& at, decltype(actors::PastRequest::what) what, std::uint64_t ticket = 1) {
    auto request = std::make_shared<actors::PastRequest>();
    request->ticket = ticket;
    request->rights = {std::nullopt, true};
    request->what = std::move(what);
    request->deadline = clock_.now() + 60s;
    caf::send_as(listener_, past_answers_actor(at.past), actors::PastRequestPtr(std::move(request)));
    settle();
  }
  /// One that reads cameras, too.
  Node& reads(Node& node) {
    standing_.nodes.at(node.name).roles.insert(cluster::NodeRole::camera);
    return node;
  }
  void say(Node& node, double probability, const json& evidence = json::array()) {
    const json answer = {{"camera", "gate"},
                         {"tenant", "acme"},
                         {"from", "2026-11-29T10:00:00.000Z"},
                         {"to", "2026-11-29T10:09:59.999Z"},
                         {"answer", node.name},
                         {"probability", probability},
                         {"evidence", evidence},
                         {"coverage", {{"share", 1.0}, {"gaps", json::array()}}},
                         {"bytes", {{"host", 0}, {"disk", 0}}},
                         {"tokens", {{"read", 0}, {"exhaustive", 0}}},
                         {"windows_lost", 0},
                         {"seconds", {{"find", 0.0}, {"read", 0.0}, {"look", 0.0}, {"total", 0.0}}}};
    caf::send_as(node.cached, node.cache.asker,
                 word(node.cache.questions.back()->ticket, PastOutcome::answer, answer.dump()));
    settle();
  }
  std::vector<std::string> keys() {
    std::vector<std::string> keys;
    for (const cluster::RegistryEntry& each : store_->range("/vigil/city/past/").entries)
      keys.push_back(each.key.substr(17));
    return keys;
  }

  /// Twice, since orders go ahead of what was done.
  void wait_for_clean_up() {
    pass(31s);
    clock_.advance(ErasureBook::kKept);
    pass(62s);
  }

  static actors::PastQuestion question() {
    return {{"gate", std::nullopt}, "Is a car there?", "", {0, 10}, memory::Method::windows, 64};
  }
  static actors::PastErasure erasure() { return {{"gate", std::nullopt}, {0, 10}}; }

  actors::testing::ManualClock clock_;
  std::shared_ptr<cluster::MemoryStore> store_ = std::make_shared<cluster::MemoryStore>(clock_);
  cluster::MemoryRegistry registry_{store_, clock_};
  std::ostringstream log_;
  spdlog::logger logger_;
  PastTestConfig config_;
  caf::actor_system system_{config_};
  NodeStanding standing_;
  int runs_ = 0;
  std::list<Node> nodes_;
  std::vector<actors::PastReply> replies_;
  actors::past_listener_actor listener_ = system_.spawn(past_listener, &replies_);
};

}  // namespace vigil::fleet::testing
