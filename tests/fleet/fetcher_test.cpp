// Stills and clips through any node: two nodes, and what lies between.
#include <filesystem>
#include <fstream>
#include <list>
#include <sstream>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "cluster/bulk/memory_bulk.h"
#include "fleet/evidence/fetcher_actor.h"
#include "fleet/messages/node_standing.h"
#include "fleet/messages/types.h"
#include "tests/actors/fakes.h"
#include "tests/temporary_folder.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;
using actors::testing::ManualClock;
using What = EvidenceReply::What;
using ::testing::HasSubstr;

const std::string kFetchedClip = "gate/2026-11-26/20261126T100012.480Z-person-0a1b.mp4";

struct Config : caf::actor_system_config {
  Config() {
    set("scheduler.policy", caf::atom("testing"));
    fleet::know_messages(*this);
  }
};

/// As a node passes on what has to do with evidence.
node_actor::behavior_type passing_node(node_actor::pointer self, fetcher_actor fetcher,
                                       const NodeStanding* standing, const base::Duration* slowness) {
  self->send(fetcher, stand_atom_v);
  return {[](greet_atom, const std::string&) { return std::string(); },
          [](dock_atom) { return caf::strong_actor_ptr(); },
          [](gateway_atom) { return caf::strong_actor_ptr(); },
          [](past_atom) { return caf::strong_actor_ptr(); },
          [](serves_atom, bool) {},
          [](keeps_atom, bool) {},
          [](const ReadConfigurationPtr&) {},
          [](way_atom, const std::string&) {},
          [](report_atom, const std::string&) { return std::string(); },
          [self, fetcher](find_atom, const std::string& name) -> caf::result<std::uint64_t> {
            return self->delegate(fetcher, find_atom_v, name);
          },
          [](find_atom, past_atom, const std::string&) { return std::string(); },
          [self, fetcher, slowness](fetch_atom, const EvidenceWish& wish) {
            if (*slowness == 0ms) return self->send(fetcher, fetch_atom_v, wish);
            self->delayed_send(fetcher, *slowness, fetch_atom_v, wish);
          },
          [](const Piece& piece) { piece.run(); },
          [](const BulkNews&) {},
          [self, fetcher](const BulkArrivalPtr& arrival) { self->send(fetcher, arrival); },
          [standing](stand_atom) { return std::make_shared<const NodeStanding>(*standing); },
          [](fence_atom, const std::string&, std::uint64_t) {},
          [](drain_atom) { return true; },
          [](tick_atom) {},
          [self](stop_atom) { self->quit(); }};
}

class FetcherTest : public ::testing::Test {
 protected:
  class Owner final : public cluster::BulkOwner {
   public:
    void received(const std::string& peer, cluster::BulkReceived received) override {
      if (node) caf::anon_send(node, std::make_shared<BulkArrival>(BulkArrival{peer, std::move(received)}));
    }
    node_actor node;
  };
  struct Node {
    Node(FetcherTest& test, const std::string& own)
        : name(own),
          bulk({.name = own}, own + ":1", "", owner, test.network_),
          fetcher(
              test.system_.spawn(fleet::fetcher, FetcherDeps{.node = own,
                                                             .dir = test.root_.path() / own,
                                                             .bulk = &bulk,
                                                             .clock = test.clock_,
                                                             .logger = test.logger_,
                                                             .limits = {.bytes = 100'000, .chunk = 1000}})) {
      owner.node = test.system_.spawn(passing_node, fetcher, &test.standing_, &test.slowness_);
      cluster::NodeRecord record;
      record.name = own;
      record.roles = {cluster::NodeRole::camera};
      test.standing_.nodes[own] = record;
      test.standing_.ways[own] = greeter_actor(owner.node);
    }
    std::string name;
    Owner owner;
    cluster::MemoryBulk bulk;
    fetcher_actor fetcher;
  };

  FetcherTest() {
    for (Node* node : {&c1_, &c2_})
      node->bulk.set_peers({{node == &c1_ ? "c2" : "c1", node == &c1_ ? "c2:1" : "c1:1"}});
    pass(2s);
  }
  ~FetcherTest() override {
    standing_.ways.clear();
    for (Node* node : {&c1_, &c2_}) {
      caf::anon_send(node->owner.node, actors::stop_atom_v);
      node->owner.node = node_actor();
    }
    pass(1s);
  }

  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    do {
      while (scheduler.try_run_once()) {
      }
      network_.step();
      for (auto& arrive : std::exchange(wire_, {})) arrive();
    } while (scheduler.has_job() || !wire_.empty());
  }
  void pass(base::Duration span) {
    settle();
    for (base::Duration step(0); step < span; step += 50ms) {
      clock_.advance(50ms);
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(50ms);
      settle();
    }
  }
  void keep(const std::string& node, const std::string& name, const std::string& bytes) const {
    fs::create_directories((root_.path() / node / name).parent_path());
    std::ofstream(root_.path() / node / name) << bytes;
  }
  /// Of somebody, who is gone with it.
  class Wish {
   public:
    Wish(FetcherTest& test, const Node& node, const std::string& name)
        : self_(test.system_), asked_(self_->request(node.fetcher, caf::infinite, fetch_atom_v, name)) {}

    bool is_told() { return self_->has_next_message(); }
    EvidenceReply told() {
      EvidenceReply told{What::failed, {}, "no answer yet"};
      if (!is_told()) return told;
      asked_.receive([&](const EvidenceReplyPtr& reply) { told = *reply; },
                     [&](const caf::error&) { told.reason = "an error"; });
      return told;
    }

   private:
    caf::scoped_actor self_;
    decltype(self_->request(fetcher_actor(), caf::infinite, fetch_atom_v, std::string())) asked_;
  };

  EvidenceReply fetched(const Node& node, const std::string& name, base::Duration within = 500ms) {
    Wish wish(*this, node, name);
    pass(within);
    return wish.told();
  }

  TemporaryFolder root_;
  ManualClock clock_;
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)};
  NodeStanding standing_;
  bool is_cut_ = false;
  /// From the wish for a part to its sending.
  base::Duration slowness_{0};
  std::vector<std::function<void()>> wire_;
  cluster::MemoryBulkNetwork network_{
      clock_, [this](const std::string&, const std::string&, const cluster::Frames& frames,
                     const cluster::MemoryBulkNetwork::Arrive& arrive) {
        if (!is_cut_) wire_.push_back([frames, arrive] { arrive(frames); });
      }};
  Config config_;
  caf::actor_system system_{config_};
  Node c1_{*this, "c1"};
  Node c2_{*this, "c2"};
};

TEST_F(FetcherTest, WhatAnyNodeHasComesThroughAnyOther) {
  std::string clip;
  for (int i = 0; i < 3210; ++i) clip += static_cast<char>(i * 7);
  keep("c1", kFetchedClip, clip);
  for (const Node* node : {&c1_, &c2_}) {
    const EvidenceReply reply = fetched(*node, kFetchedClip);
    EXPECT_EQ(reply.what, What::found) << reply.reason;
    EXPECT_EQ(reply.bytes, clip) << node->name;
  }
}

TEST_F(FetcherTest, HostileNamesAreRefusedAndAskedOfNobody) {
  for (const char* name : {"../../../etc/passwd", "gate/2026-11-26/../../c1.mp4", ""})
    EXPECT_EQ(fetched(c2_, name).what, What::refused) << name;
}

TEST_F(FetcherTest, WhatNobodyHasIsSaidToBeGone) {
  EXPECT_EQ(fetched(c2_, kFetchedClip).what, What::absent);
  EXPECT_THAT(fetched(c2_, kFetchedClip).reason, HasSubstr("or its node is gone, and it with that"));
  EXPECT_EQ(fetched(c2_, kFetchedClip).reason.find('\n'), std::string::npos);
}

TEST_F(FetcherTest, ANodeThatDoesNotAnswerIsNamed) {
  keep("c1", kFetchedClip, "clip");
  standing_.ways.erase("c1");
  EXPECT_EQ(fetched(c2_, kFetchedClip).reason,
            "no node that answers has it, and c1 does not answer: it may be there");
}

TEST_F(FetcherTest, MoreThanMayBeFetchedIsNotAndSaidToBeSo) {
  keep("c1", kFetchedClip, std::string(100'001, 'x'));
  for (const Node* node : {&c1_, &c2_, &c2_, &c2_}) {
    const EvidenceReply reply = fetched(*node, kFetchedClip);
    EXPECT_EQ(reply.what, What::failed) << node->name;
    EXPECT_EQ(reply.reason,
              "node c1 has it, and it is larger than what is fetched: 100001 bytes, of 100000 at most")
        << node->name;
  }
  keep("c1", kFetchedClip, std::string(100'000, 'x'));
  EXPECT_EQ(fetched(c2_, kFetchedClip).bytes.size(), 100'000U);
}

TEST_F(FetcherTest, AWayThatIsCutEndsItInTime) {
  keep("c1", kFetchedClip, std::string(5000, 'x'));
  is_cut_ = true;
  const EvidenceReply reply = fetched(c2_, kFetchedClip, 6s);
  EXPECT_EQ(reply.what, What::failed);
  EXPECT_EQ(reply.reason, "node c1 has it, and did not send it in time");
  is_cut_ = false;
  pass(5s);
  EXPECT_EQ(fetched(c2_, kFetchedClip).what, What::found) << "asked again, it comes";
}

TEST_F(FetcherTest, OnlySoManyAreFetchedAtOnce) {
  keep("c2", "own/day/own.jpg", "own");
  for (const char* name : {"a/b/1.jpg", "a/b/2.jpg", "a/b/3.jpg"}) keep("c1", name, std::string(5000, 'x'));
  is_cut_ = true;
  Wish one(*this, c2_, "a/b/1.jpg");
  Wish other(*this, c2_, "a/b/2.jpg");
  settle();
  EXPECT_EQ(fetched(c2_, "a/b/3.jpg").what, What::busy);
  EXPECT_EQ(fetched(c2_, "own/day/own.jpg").bytes, "own") << "its own needs no other node";
  is_cut_ = false;
  pass(12s);
  EXPECT_TRUE(one.is_told() && other.is_told());
  // The way has to be made anew, which whoever asks first may find out.
  static_cast<void>(fetched(c2_, "a/b/3.jpg", 6s));
  EXPECT_EQ(fetched(c2_, "a/b/3.jpg", 6s).what, What::found);
}

TEST_F(FetcherTest, WhoeverWishesForWhatIsOnItsWayWaitsForThat) {
  for (const char* name : {"a/b/1.jpg", "a/b/2.jpg", "a/b/3.jpg"})
    keep("c1", name, std::string(5000, name[4]));
  slowness_ = 300ms;
  Wish first(*this, c2_, "a/b/1.jpg");
  pass(1s);
  Wish again(*this, c2_, "a/b/1.jpg");
  Wish other(*this, c2_, "a/b/2.jpg");
  settle();
  EXPECT_EQ(fetched(c2_, "a/b/3.jpg", 0ms).what, What::busy) << "both slots are taken";
  EXPECT_EQ(fetched(c2_, "a/b/1.jpg", 0ms).what, What::busy) << "three wait already";
  pass(1s);
  EXPECT_EQ(first.told().bytes, std::string(5000, '1'));
  EXPECT_EQ(again.told().bytes, std::string(5000, '1'));
  pass(1s);
  EXPECT_EQ(other.told().bytes, std::string(5000, '2'));
  EXPECT_EQ(fetched(c2_, "a/b/3.jpg", 2s).bytes, std::string(5000, '3'));
}

TEST_F(FetcherTest, WhoeverWishesForWhatIsLookedForHasTheSameAnswer) {
  Wish one(*this, c2_, kFetchedClip);
  Wish other(*this, c2_, kFetchedClip);
  Wish third(*this, c2_, "a/b/3.jpg");
  settle();
  for (Wish* wish : {&one, &other, &third}) EXPECT_EQ(wish->told().what, What::absent);
}

TEST_F(FetcherTest, WhatNobodyWaitsForAnyMoreTakesNoSlot) {
  for (const char* name : {"a/b/1.jpg", "a/b/2.jpg", "a/b/3.jpg"})
    keep("c1", name, std::string(5000, name[4]));
  slowness_ = 300ms;
  std::optional<Wish> only(std::in_place, *this, c2_, "a/b/1.jpg");
  std::optional<Wish> one(std::in_place, *this, c2_, "a/b/2.jpg");
  Wish other(*this, c2_, "a/b/2.jpg");
  settle();
  one.reset();
  EXPECT_EQ(fetched(c2_, "a/b/3.jpg", 0ms).what, What::busy) << "the other one still waits";
  only.reset();
  Wish next(*this, c2_, "a/b/3.jpg");
  pass(2s);
  EXPECT_EQ(next.told().reason, "");
  EXPECT_EQ(other.told().bytes, std::string(5000, '2'));
}

TEST_F(FetcherTest, WhoeverGoesWhileItIsLookedForIsNotLookedForAnyMore) {
  std::optional<Wish> gone(std::in_place, *this, c2_, kFetchedClip);
  dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).run_once();
  gone.reset();
  pass(3s);
  keep("c1", kFetchedClip, "clip");
  EXPECT_EQ(fetched(c2_, kFetchedClip).bytes, "clip");
}

TEST_F(FetcherTest, WhatComesTooSlowlyEndsBeforeWhoeverWaitsGivesUp) {
  keep("c1", kFetchedClip, std::string(100'000, 'x'));
  slowness_ = 4900ms;
  Wish wish(*this, c2_, kFetchedClip);
  const auto begun = clock_.now();
  while (!wish.is_told() && clock_.now() - begun < 200s) pass(500ms);
  EXPECT_LT(clock_.now() - begun, kFetcherAnswers);
  EXPECT_EQ(wish.told().reason,
            "node c1 has it, and sends it too slowly: 24000 of 100000 bytes came within 2m");
  slowness_ = 0ms;
  EXPECT_EQ(fetched(c2_, kFetchedClip, 2s).bytes.size(), 100'000U) << "asked again, over a better line";
}

TEST_F(FetcherTest, AFileThatGoesWhileItIsFetchedIsToldToBeGone) {
  keep("c1", kFetchedClip, std::string(5000, 'x'));
  is_cut_ = true;
  caf::scoped_actor self{system_};
  auto asked = self->request(c2_.fetcher, caf::infinite, fetch_atom_v, kFetchedClip);
  settle();
  is_cut_ = false;
  fs::remove(root_.path() / "c1" / kFetchedClip);
  // What was sent is on its way again with the next stream, or asked for in vain.
  pass(7s);
  asked.receive([](const EvidenceReplyPtr& reply) { EXPECT_EQ(reply->what, What::failed); },
                [](const caf::error&) { ADD_FAILURE(); });
}

TEST_F(FetcherTest, WhoWaitsIsToldWhenTheNodeEnds) {
  keep("c1", kFetchedClip, std::string(5000, 'x'));
  is_cut_ = true;
  caf::scoped_actor self{system_};
  auto asked = self->request(c2_.fetcher, caf::infinite, fetch_atom_v, kFetchedClip);
  settle();
  caf::anon_send(c2_.owner.node, actors::stop_atom_v);
  settle();
  asked.receive([](const EvidenceReplyPtr& reply) { EXPECT_EQ(reply->reason, "this node ends"); },
                [](const caf::error&) { ADD_FAILURE(); });
}

}  // namespace
}  // namespace vigil::fleet
