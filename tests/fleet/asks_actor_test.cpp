// Questions about the past from a client's socket to the cache, which is a test's, and back.
#include "fleet/asks/asks_actor.h"

#include <sstream>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spdlog/sinks/ostream_sink.h>

#include "cluster/asks/client.h"
#include "fleet/messages/types.h"
#include "tests/actors/fakes.h"
#include "tests/temporary_folder.h"

namespace vigil::fleet {
namespace {

using namespace std::chrono_literals;
using actors::PastOutcome;
using cluster::AskClient;
using cluster::AskRefusal;
using cluster::AskRefusalType;
using cluster::AskReply;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

struct Config : caf::actor_system_config {
  Config() {
    set("scheduler.policy", caf::atom("testing"));
    fleet::know_messages(*this);
  }
};

/// What a cache hears of requests.
struct CacheEar {
  std::vector<actors::PastRequestPtr> requests;
  std::vector<std::uint64_t> forgotten;
};

actors::cache_actor::behavior_type listening_cache(actors::cache_actor::pointer self, CacheEar* ear) {
  return {[](actors::join_atom, const std::string&) {},
          [](const actors::WatchPtr&) {},
          [](actors::end_atom, const std::string&) {},
          [](const actors::KeepsPtr&) {},
          [](const actors::LeftPagesPtr&) {},
          [](const actors::ShownPtr&) {},
          [](const actors::RecalledPtr&) {},
          [ear](const actors::PastRequestPtr& request) { ear->requests.push_back(request); },
          [ear](actors::forget_atom, std::uint64_t ticket) { ear->forgotten.push_back(ticket); },
          [](const actors::ReadPagesPtr&) {},
          [](const actors::DiskNewsPtr&) {},
          [](actors::tick_atom) {},
          [self](actors::stop_atom) { self->quit(); }};
}

class AsksActorTest : public ::testing::Test {
 protected:
  explicit AsksActorTest(std::size_t at_once = 4) {
    const std::string endpoint = "ipc://" + folder_.path().string() + "/asks";
    asks_ = system_.spawn(fleet::asks,
                          AsksDeps{.server = std::make_shared<cluster::AskServer>(
                                       cluster::AskServer::Options{.endpoint = endpoint, .clock = &clock_}),
                                   .answers = cache_,
                                   .book = {.at_once = at_once},
                                   .clock = clock_,
                                   .logger = logger_,
                                   .metrics = metrics_});
    logger_.set_pattern("%l %v");
    logger_.set_level(spdlog::level::info);
    settle();
    client_.emplace(AskClient::Options{.endpoint = endpoint, .clock = &clock_});
  }
  ~AsksActorTest() override {
    caf::anon_send(asks_, actors::stop_atom_v);
    caf::anon_send(cache_, actors::stop_atom_v);
    asks_ = asks_actor();
    cache_ = actors::cache_actor();
    settle();
  }

  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    while (scheduler.try_run_once()) {
    }
  }
  /// One tick after the other, until this is so. The clock stands still meanwhile.
  bool eventually(const std::function<bool()>& done) {
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (std::chrono::steady_clock::now() < until) {
      dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(50ms);
      settle();
      if (done()) return true;
      ::poll(nullptr, 0, 1);  // So that ZeroMQ's threads have the processor.
    }
    return false;
  }
  AskClient::Tag ask(const cluster::AskRequest& request) {
    std::optional<AskClient::Tag> tag;
    EXPECT_TRUE(eventually([&] { return (tag = client_->ask(request, 1h)).has_value(); }));
    return tag.value_or(0);
  }
  bool wait_requests(std::size_t count) {
    return eventually([&] { return ear_.requests.size() >= count; });
  }
  void answer(std::size_t request, PastOutcome outcome, const std::string& text) {
    caf::anon_send(asks_, std::make_shared<const actors::PastReply>(
                              actors::PastReply{ear_.requests.at(request)->ticket, outcome, text}));
  }
  AskReply next() {
    std::optional<AskClient::Arrival> arrival;
    EXPECT_TRUE(eventually([&] { return (arrival = client_->take()).has_value(); }));
    return arrival ? arrival->reply : AskReply();
  }
  static cluster::AskQuestion question() {
    return {.camera = "gate", .question = "Which secret car?", .from_ms = 1000, .to_ms = 2000};
  }

  actors::testing::ManualClock clock_;
  TemporaryFolder folder_;
  /// Of `vigil_past_questions_total`; nothing if it is not there.
  std::optional<double> counted(const std::string& outcome) const {
    const std::string page = metrics_.text();
    const std::string series = "vigil_past_questions_total{outcome=\"" + outcome + "\"} ";
    const auto at = page.find(series);
    return at == std::string::npos ? std::nullopt : std::optional(std::stod(page.substr(at + series.size())));
  }

  actors::Metrics metrics_;
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_st>(log_)};
  Config config_;
  caf::actor_system system_{config_};
  CacheEar ear_;
  actors::cache_actor cache_ = system_.spawn(listening_cache, &ear_);
  asks_actor asks_;
  std::optional<AskClient> client_;
};

TEST_F(AsksActorTest, AQuestionIsAnsweredByTheCache) {
  ask(question());
  ASSERT_TRUE(wait_requests(1));
  EXPECT_EQ(std::get<actors::PastQuestion>(ear_.requests[0]->what).question, "Which secret car?");
  EXPECT_EQ(ear_.requests[0]->deadline, clock_.now() + 1min);
  answer(0, PastOutcome::progress, R"({"done":1})");
  EXPECT_EQ(next(), AskReply(cluster::AskProgress{R"({"done":1})"}));
  answer(0, PastOutcome::answer, R"({"answer":"Yes","tenant":"north"})");
  EXPECT_EQ(next(), AskReply(cluster::AskAnswer{R"({"answer":"Yes","tenant":"north"})"}));
  EXPECT_THAT(
      log_.str(),
      HasSubstr("info asks: question about camera gate of tenant north from 1970-01-01T00:00:01.000Z to "
                "1970-01-01T00:00:02.000Z by windows, asked by local: answer after"));
  EXPECT_THAT(log_.str(), Not(HasSubstr("secret")));
}

TEST_F(AsksActorTest, AnErasureThatBeginsAfterNowIsRefusedWhateverTheAskersClockSays) {
  cluster::MemoryErase erasure{"gate"};
  erasure.from_ms = 1'785'578'400'000 + 60'000;
  ask(erasure);
  EXPECT_EQ(next(), AskReply(AskRefusal{AskRefusalType::bad_request, "erase.from_ms: has not come yet"}));
  EXPECT_TRUE(ear_.requests.empty());
}

TEST_F(AsksActorTest, AnErasureIsWarnedOf) {
  ask(cluster::MemoryErase{"gate"});
  ASSERT_TRUE(wait_requests(1));
  answer(0, PastOutcome::forbidden, "this key may not erase");
  EXPECT_EQ(next(), AskReply(AskRefusal{AskRefusalType::forbidden, "this key may not erase"}));
  EXPECT_THAT(log_.str(), HasSubstr("warning asks: erasure of camera gate until "));
  EXPECT_THAT(log_.str(), HasSubstr("asked by local: forbidden after "));
}

TEST_F(AsksActorTest, TheCacheHearsOfWhatNobodyWaitsForAnyMore) {
  const AskClient::Tag withdrawn = ask(question());
  ask(question());
  ASSERT_TRUE(wait_requests(2));
  client_->cancel(withdrawn);
  ASSERT_TRUE(eventually([&] { return ear_.forgotten.size() == 1; }));
  clock_.advance(1min);
  ASSERT_TRUE(eventually([&] { return ear_.forgotten.size() == 2; }));
  EXPECT_THAT(ear_.forgotten, ElementsAre(ear_.requests[0]->ticket, ear_.requests[1]->ticket));
  EXPECT_EQ(next(), AskReply(AskRefusal{AskRefusalType::too_late, "no answer within 60000 ms"}));
  // Whoever takes their places is told, and nobody else.
  answer(0, PastOutcome::answer, "\"late\"");
  ask(question());
  ASSERT_TRUE(wait_requests(3));
  answer(2, PastOutcome::answer, "\"mine\"");
  EXPECT_EQ(next(), AskReply(cluster::AskAnswer{"\"mine\""}));
  client_.reset();
  EXPECT_EQ(ear_.forgotten.size(), 2U);
}

TEST_F(AsksActorTest, AClientThatGoesIsForgotten) {
  ask(question());
  ASSERT_TRUE(wait_requests(1));
  client_.reset();
  EXPECT_TRUE(eventually([&] { return ear_.forgotten.size() == 1; }));
  EXPECT_THAT(log_.str(), HasSubstr("asked by local: gone after "));
}

TEST_F(AsksActorTest, WhenTheCacheEndsEveryoneIsTold) {
  ask(question());
  ask(cluster::MemoryList{});
  ASSERT_TRUE(wait_requests(2));
  caf::anon_send_exit(cache_, caf::exit_reason::kill);
  EXPECT_EQ(next(), AskReply(AskBook::nobody_answers()));
  EXPECT_EQ(next(), AskReply(AskBook::nobody_answers()));
  ask(cluster::MemoryList{});
  EXPECT_EQ(next(), AskReply(AskBook::nobody_answers()));
  EXPECT_THAT(log_.str(), HasSubstr("error asks: who answers about the past has ended"));
}

TEST_F(AsksActorTest, WhatIsUnderWayAtTheEndIsForgottenAndToldAsLost) {
  ask(question());
  ASSERT_TRUE(wait_requests(1));
  caf::anon_send(asks_, actors::stop_atom_v);
  ASSERT_TRUE(eventually([&] { return ear_.forgotten.size() == 1; }));
  const AskReply told = next();
  ASSERT_TRUE(std::holds_alternative<AskRefusal>(told));
  EXPECT_EQ(std::get<AskRefusal>(told).type, AskRefusalType::unavailable);
  EXPECT_THAT(std::get<AskRefusal>(told).message, HasSubstr("was lost"));
}

TEST_F(AsksActorTest, QuestionsWhoseTimeIsOverAreCounted) {
  EXPECT_EQ(counted("too_late"), 0) << "from the start";
  EXPECT_EQ(counted("busy"), 0);
  cluster::AskQuestion hurried = question();
  hurried.timeout = 5s;
  ask(hurried);
  ask(question());
  ask(cluster::MemoryList{.camera = std::nullopt, .tenant = std::nullopt, .timeout = 5s});
  ASSERT_TRUE(wait_requests(3));
  clock_.advance(5s);
  ASSERT_TRUE(eventually([&] { return ear_.forgotten.size() == 2; }));
  EXPECT_TRUE(eventually([&] { return counted("too_late") == 1; }));
  // The answer of the other one is none of these.
  answer(1, PastOutcome::answer, "{}");
  settle();
  EXPECT_EQ(counted("too_late"), 1);
  EXPECT_EQ(counted("busy"), 0);
}

TEST_F(AsksActorTest, QuestionsBeyondAClientsShareAreCountedAsBusy) {
  for (int i = 0; i < 4; ++i) ask(cluster::MemoryList{});
  ASSERT_TRUE(wait_requests(4));
  ask(cluster::MemoryList{});
  ask(question());
  for (int i = 0; i < 2; ++i) {
    const AskReply told = next();
    ASSERT_TRUE(std::holds_alternative<AskRefusal>(told));
    EXPECT_EQ(std::get<AskRefusal>(told).type, AskRefusalType::busy);
  }
  EXPECT_EQ(counted("busy"), 1) << "the question alone";
  EXPECT_EQ(counted("too_late"), 0);
}

class AskedOneAtATimeTest : public AsksActorTest {
 protected:
  AskedOneAtATimeTest() : AsksActorTest(1) {}
};

TEST_F(AskedOneAtATimeTest, AnotherQuestionIsToldToComeBack) {
  ask(question());
  ask(question());
  EXPECT_EQ(next(),
            AskReply(AskRefusal{AskRefusalType::busy, "as many questions as may be are under way", 1000ms}));
  EXPECT_TRUE(eventually([&] { return counted("busy") == 1; }));
  EXPECT_EQ(counted("too_late"), 0);
  ask(cluster::MemoryErase{"gate"});
  ASSERT_TRUE(wait_requests(2));
  EXPECT_TRUE(std::holds_alternative<actors::PastErasure>(ear_.requests[1]->what));
}

}  // namespace
}  // namespace vigil::fleet
