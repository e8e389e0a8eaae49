// Nodes whose caches are a test's, a gateway, and a registry in memory.
#include "fleet/past/past_actor.h"

#include <list>
#include <sstream>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "cluster/registry/memory_registry.h"
#include "cluster/registry/memory_store.h"
#include "fleet/asks/asks_actor.h"
#include "fleet/messages/types.h"
#include "tests/actors/fakes.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastOutcome;
using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

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

actors::PastReplyPtr word(std::uint64_t ticket, PastOutcome outcome, std::string text,
                          bool is_unknown = false) {
  auto reply = std::make_shared<actors::PastReply>();
  reply->ticket = ticket;
  reply->outcome = outcome;
  reply->text = std::move(text);
  reply->is_unknown = is_unknown;
  return reply;
}

json list_row(const std::string& tenant) {
  return {{"camera", "gate"}, {"tenant", tenant}, {"watched", true},
          {"keep_s", 60.0},   {"pages", 1},       {"bytes", {{"host", 1}, {"disk", 2}}},
          {"from", nullptr},  {"to", nullptr},    {"forms", json::array()}};
}

actors::cache_actor::behavior_type asked_cache(actors::cache_actor::pointer self, PastCache* cache) {
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

/// As a node says what it knows, and who answers about its past.
node_actor::behavior_type past_node(node_actor::pointer self, past_actor past, bool remembers,
                                    const NodeStanding* standing) {
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

actors::past_listener_actor::behavior_type past_listener(actors::past_listener_actor::pointer self,
                                                         std::vector<actors::PastReply>* replies) {
  self->set_default_handler(caf::drop);
  return {[replies](const actors::PastReplyPtr& reply) { replies->push_back(*reply); }};
}

class PastActorTest : public ::testing::Test {
 protected:
  struct Node {
    std::string name;
    PastCache cache;
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
    node.owner = system_.spawn(past_node, node.past, remembers, &standing_);
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
  void say(Node& node, double probability) {
    const json answer = {{"camera", "gate"},
                         {"tenant", "acme"},
                         {"from", "2026-11-29T10:00:00.000Z"},
                         {"to", "2026-11-29T10:09:59.999Z"},
                         {"answer", node.name},
                         {"probability", probability},
                         {"evidence", json::array()},
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

TEST_F(PastActorTest, AQuestionIsPutToAllWhoRemember) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true, /*has_disk=*/false);
  Node& gateway = node("gw", false);
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
  ask(gateway, question());
  ASSERT_THAT(one.cache.questions, SizeIs(1));
  ASSERT_THAT(two.cache.questions, SizeIs(1));
  EXPECT_EQ(std::get<actors::PastQuestion>(two.cache.questions[0]->what).question, "Is a car there?");
  EXPECT_EQ(two.cache.questions[0]->deadline, clock_.now() + 60s);
  say(one, 0.2);
  EXPECT_THAT(replies_, IsEmpty());
  say(two, 0.9);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].ticket, 1U);
  EXPECT_EQ(json::parse(replies_[0].text).at("answer"), "gpu-2");
}

TEST_F(PastActorTest, ANodeThatRemembersAsksItselfToo) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  ask(one, question());
  ASSERT_THAT(one.cache.questions, SizeIs(1));
  say(one, 0.2);
  say(two, 0.1);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("answer"), "gpu-1");
}

TEST_F(PastActorTest, WhoIsGoneIsNamed) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  // While it is asked.
  ask(gateway, question());
  end(two);
  say(one, 0.2);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(json::parse(replies_[0].text).at("silent"), ElementsAre("gpu-2"));
  // And before that.
  ask(gateway, question(), 2);
  say(one, 0.2);
  ASSERT_THAT(replies_, SizeIs(2));
  EXPECT_THAT(json::parse(replies_[1].text).at("silent"), ElementsAre("gpu-2"));
}

TEST_F(PastActorTest, WhatNobodyWaitsForIsForgottenEverywhere) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  ask(gateway, question());
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::forget_atom_v, std::uint64_t{1});
  settle();
  EXPECT_THAT(one.cache.forgotten, ElementsAre(one.cache.questions[0]->ticket));
  // A gateway that is gone waits for nothing, either.
  ask(gateway, question(), 2);
  end(gateway);
  EXPECT_THAT(one.cache.forgotten, SizeIs(2));
}

TEST_F(PastActorTest, AnErasureIsAnsweredWhenAllHaveDoneIt) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  ask(gateway, erasure());
  ASSERT_THAT(one.cache.erasures, SizeIs(1));
  ASSERT_THAT(two.cache.erasures, SizeIs(1));
  const auto& what = std::get<actors::PastErasure>(one.cache.erasures[0]->what);
  EXPECT_EQ(what.camera, (actors::PastCamera{"gate", "acme"}));
  EXPECT_EQ(what.wall, (history::WallRange{0, 10}));
  EXPECT_TRUE(one.cache.erasures[0]->rights.erase);
  pass(250ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::answer) << replies_[0].text;
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 10);
  EXPECT_THAT(keys(), SizeIs(5)) << "others may come back who have not heard of it";
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2")) << "what is over is removed";
  EXPECT_THAT(one.cache.erasures, SizeIs(1)) << "once";
}

TEST_F(PastActorTest, ANodeThatWasAwayDoesItBeforeItAnswers) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  end(two);
  ask(gateway, erasure());
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(one.cache.erasures, SizeIs(1));
  pass(59s + 750ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::unavailable);
  EXPECT_THAT(replies_[0].text, HasSubstr("not done yet by gpu-2"));
  // It stays ordered, whoever asked.
  EXPECT_THAT(keys(), SizeIs(4));
  for (const Node* each : {&one, &gateway}) EXPECT_EQ(each->waiting(), "1");

  two.cache.erasures.clear();
  start(two, true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  ask(gateway, question(), 2);
  EXPECT_THAT(two.cache.questions, SizeIs(1));
  for (const Node* each : {&one, &two, &gateway}) EXPECT_EQ(each->waiting(), "0") << "what is done stays";
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
}

TEST_F(PastActorTest, WhatTheDiskDoesNotDoIsTriedAgain) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  one.cache.fails = true;
  ask(gateway, erasure());
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(log_.str(),
              HasSubstr("error past: an erasure is not done yet, and tried again: the disk is full"));
  one.cache.fails = false;
  pass(6s);
  EXPECT_THAT(one.cache.erasures, SizeIs(2));
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].outcome, PastOutcome::answer);
}

TEST_F(PastActorTest, WhatIsOnADiskThatANodeDoesNotUseAnyMoreIsWaitedFor) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  end(one);
  start(one, true, /*has_disk=*/false);
  ask(gateway, erasure());
  EXPECT_THAT(one.cache.erasures, SizeIs(1)) << "what is in its memory goes";
  EXPECT_THAT(replies_, IsEmpty());
  EXPECT_THAT(log_.str(), HasSubstr("it has no memory.dir now"));
  pass(60s);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(replies_[0].text, HasSubstr("not done yet by gpu-1"));
}

TEST_F(PastActorTest, WhoDoesNotKnowTheCameraHasNothingToErase) {
  node("gpu-1", true);
  Node& two = node("gpu-2", true);
  two.cache.knows = false;
  Node& gateway = node("gw", false);
  ask(gateway, erasure());
  pass(250ms);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 5);
}

TEST_F(PastActorTest, AnErasureOfAGatewayThatEndsIsDoneAllTheSame) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  end(two);
  ask(gateway, erasure());
  end(gateway);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(replies_[0].text, "this node ends");
  Node& other = node("gw-2", false);
  start(two, true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  wait_for_clean_up();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1", "nodes/gpu-2"));
  EXPECT_THAT(one.cache.erasures, SizeIs(1));
  static_cast<void>(other);
}

TEST_F(PastActorTest, WhatARegistryHoldsThatIsNoneIsToldOnce) {
  store_->commit({{}, {cluster::RegistryPut{"/vigil/city/past/erasures/odd", "none", 0}}});
  Node& one = node("gpu-1", true);
  store_->commit({{}, {cluster::RegistryPut{"/vigil/city/past/nodes/x", R"({"disk": false})", 0}}});
  settle();
  const std::string log = log_.str();
  const std::string line = "error past: the registry's key /vigil/city/past/erasures/odd: is no JSON object";
  EXPECT_THAT(log, HasSubstr(line));
  EXPECT_EQ(log.find(line), log.rfind(line));
  EXPECT_THAT(one.cache.erasures, IsEmpty());
}

TEST_F(PastActorTest, WhoIsForgottenByTheRegistrySaysAgainThatHeRemembers) {
  node("gpu-1", true);
  store_->commit({{}, {cluster::RegistryDelete{"/vigil/city/past/nodes/gpu-1"}}});
  settle();
  EXPECT_THAT(keys(), ElementsAre("nodes/gpu-1"));
}

TEST_F(PastActorTest, WhoJoinsWhileItIsErasedDoesItToo) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  one.cache.fails = true;
  ask(gateway, erasure());
  Node& two = node("gpu-2", true);
  EXPECT_THAT(two.cache.erasures, SizeIs(1));
  one.cache.fails = false;
  pass(6s);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_EQ(json::parse(replies_[0].text).at("pages"), 10);
}

TEST_F(PastActorTest, AnAskerThatGoesWhileItIsFoundOutWhoAnswersAsksNobody) {
  Node& one = node("gpu-1", true);
  Node& gateway = node("gw", false);
  auto request = std::make_shared<actors::PastRequest>();
  request->ticket = 1;
  request->what = question();
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::PastRequestPtr(std::move(request)));
  caf::send_as(listener_, past_answers_actor(gateway.past), actors::forget_atom_v, std::uint64_t{1});
  settle();
  EXPECT_THAT(one.cache.questions, IsEmpty());
}

TEST_F(PastActorTest, ACacheThatEndsIsSilent) {
  Node& one = node("gpu-1", true);
  Node& two = node("gpu-2", true);
  Node& gateway = node("gw", false);
  ask(gateway, question());
  caf::anon_send(one.cached, actors::stop_atom_v);
  settle();
  say(two, 0.1);
  ASSERT_THAT(replies_, SizeIs(1));
  EXPECT_THAT(json::parse(replies_[0].text).at("silent"), ElementsAre("gpu-1"));
  EXPECT_THAT(log_.str(), HasSubstr("the cache has ended"));
}

}  // namespace
}  // namespace vigil::fleet
