// What the shell around the desk does with a mailbox that is full.
#include "actors/alerts/alerts_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/alerts/books.h"
#include "tests/actors/events.h"
#include "tests/actors/pipeline.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class AlertsActor : public ::testing::Test {
 protected:
  void TearDown() override {
    self_->send(alerts_, stop_atom_v);
    settle();
  }

  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    while (scheduler.try_run_once()) {
    }
  }

  void send_states(int count) {
    self_->send(alerts_, gate_);
    for (int i = 0; i < count; ++i)
      self_->send(alerts_, StatusChange{gate_->ref(), CameraState::stalled, std::to_string(i)});
  }

  ManualClock clock_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  FakePublisher publisher_;
  std::unique_ptr<Outbox> inner_ = make_memory_outbox();
  WatchedOutbox outbox_{*inner_};
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  WatchPtr gate_ = watch("gate");
  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  alerts_actor alerts_ = system_.spawn(
      alerts, AlertsDeps{{.model = {"m"}}, outbox_, publisher_, clock_, metrics_, board_, logger_},
      evidence_actor(), supervisor_actor());
};

TEST_F(AlertsActor, WritesTogetherWhatHasComeMeanwhile) {
  settle();
  outbox_.appends.clear();
  send_states(200);
  settle();
  EXPECT_THAT(outbox_.appends, SizeIs(1));
  EXPECT_THAT(publisher_.messages, SizeIs(200));
}

TEST_F(AlertsActor, AnAlertBehindAFloodOfStatesWaitsForOneAppendAtMost) {
  settle();
  outbox_.appends.clear();
  send_states(10'000);
  // As prefill does.
  for (const double end : {2.0, 4.0})
    self_->send<caf::message_priority::high>(alerts_, window_of(gate_, end, {0.9F}));
  settle();
  std::size_t before = 0;
  while (outbox_.appends.at(before).front().topic.starts_with("status/")) ++before;
  EXPECT_LE(before, 1U);
  EXPECT_THAT(publisher_.messages, SizeIs(10'001));
  EXPECT_LE(outbox_.appends.size(), 10'000U / 256 + 3);
}

TEST_F(AlertsActor, AnExplanationThatNobodyGivesIsForgotten) {
  auto explaining = std::make_shared<WatchSettings>(*gate_);
  explaining->rules[0].explain = true;
  const auto pass = [&](base::Duration span) {
    clock_.advance(span);
    dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(span);
    settle();
  };
  const auto show = [&](double end) {
    auto window = std::make_shared<WindowAnswers>(*window_of(explaining, end, {0.9F}));
    window->id = stream::WindowId{"gate", 1, static_cast<std::uint64_t>(end)};
    self_->send<caf::message_priority::high>(alerts_, WindowAnswersPtr(std::move(window)));
    settle();
  };
  const auto said_of = [&](std::uint64_t ticket) {
    log_.str("");
    self_->send<caf::message_priority::high>(alerts_, Explanation{ticket, "", "it was slow"});
    settle();
    return log_.str();
  };
  show(2);
  show(4);
  EXPECT_THAT(publisher_.messages, SizeIs(0)) << "it waits for its text";
  pass(kExplanationPatience + 1s);
  EXPECT_THAT(publisher_.messages, SizeIs(1)) << "and is told without";
  EXPECT_THAT(said_of(0), HasSubstr("no explanation for rule person: it was slow"));
  EXPECT_THAT(said_of(0), IsEmpty());

  // An episode ends, and the next one begins.
  self_->send(alerts_, end_atom_v, std::string("gate"));
  show(400);
  show(402);
  pass(2 * kExplanationPatience + 1s);
  EXPECT_THAT(said_of(1), IsEmpty()) << "whoever was to answer is gone";
}

class ClaimingAlertsActor : public AlertsActor {
 protected:
  ClaimingAlertsActor() {
    self_->send(alerts_, stop_atom_v);
    settle();
    claims_ = system_.spawn([this](claims_actor::pointer self) -> claims_actor::behavior_type {
      return {[this, self](claim_atom, const std::string& camera, std::uint64_t fence) {
        claimed_.push_back(camera + ' ' + std::to_string(fence));
        EXPECT_EQ(self->current_sender(), alerts_) << "to whom the books go";
      }};
    });
    alerts_ = system_.spawn(
        alerts, AlertsDeps{{.model = {"m"}}, outbox_, publisher_, clock_, metrics_, board_, logger_, claims_},
        evidence_actor(), supervisor_actor());
    settle();
  }
  void TearDown() override {
    AlertsActor::TearDown();
    caf::anon_send_exit(claims_, caf::exit_reason::user_shutdown);
    settle();
    claims_ = nullptr;
  }

  /// What came back for windows: "grant", "explain", "done".
  std::vector<std::string> answers() {
    settle();
    std::vector<std::string> result;
    for (bool more = true; more;)
      self_->receive([&](grant_atom, std::uint32_t) { result.emplace_back("grant"); },
                     [&](const Explain&) { result.emplace_back("explain"); },
                     [&](const Done&) { result.emplace_back("done"); },
                     caf::after(std::chrono::seconds(0)) >> [&] { more = false; });
    return result;
  }
  void pass(base::Duration span) {
    clock_.advance(span);
    dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(span);
    answers();
  }
  /// Why it has ended, if it has; to be monitored.
  std::optional<std::string> ended() {
    std::optional<std::string> why;
    self_->receive([&](const caf::down_msg& down) { why = caf::to_string(down.reason); },
                   caf::after(std::chrono::seconds(0)) >> [] {});
    return why;
  }
  void show(double end) {
    auto window = std::make_shared<WindowAnswers>(*window_of(explaining_, end, {0.9F}));
    window->id = stream::WindowId{"gate", 1, static_cast<std::uint64_t>(end)};
    self_->send<caf::message_priority::high>(alerts_, WindowAnswersPtr(std::move(window)));
  }

  claims_actor claims_;
  std::vector<std::string> claimed_;
  std::shared_ptr<WatchSettings> explaining_ = [] {
    auto settings = std::make_shared<WatchSettings>(*watch("gate", version_of(7, 1)));
    settings->rules[0].explain = true;
    return settings;
  }();
};

TEST_F(ClaimingAlertsActor, KeepsItsWindowsUntilTheBooksAreThere) {
  show(2);
  show(4);
  EXPECT_THAT(answers(), ::testing::ElementsAre("grant", "grant")) << "nothing is held up";
  EXPECT_THAT(claimed_, ::testing::ElementsAre("gate 7"));
  self_->send(alerts_, std::make_shared<const SeriesBooks>(SeriesBooks{"gate", 7, 0, 0, {}, {}}));
  EXPECT_THAT(answers(), ::testing::ElementsAre("explain", "done", "done"));
  self_->send<caf::message_priority::high>(alerts_, Explanation{0, "Yes.", ""});
  settle();
  EXPECT_THAT(publisher_.messages, SizeIs(1));
}

TEST_F(ClaimingAlertsActor, GivesBackTheWindowsOfWhatIsLost) {
  self_->send(alerts_, SeriesBooksPtr());
  self_->send(alerts_, WatchPtr(explaining_));
  self_->send(alerts_, StatusChange{explaining_->ref(), CameraState::up, ""});
  show(2);
  EXPECT_THAT(answers(), ::testing::ElementsAre("grant"));
  self_->send(alerts_, lost_atom_v, std::string("gate"), std::uint64_t{7});
  EXPECT_THAT(answers(), ::testing::ElementsAre("done"));
  show(4);
  EXPECT_THAT(answers(), ::testing::UnorderedElementsAre("grant", "done"));
  EXPECT_THAT(publisher_.messages, IsEmpty());
  clock_.advance(1s);
  dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(1s);
  settle();
  EXPECT_THAT(log_.str(), HasSubstr("alerts: events of gate that are not told, since another node went on "
                                    "without them: 2"))
      << "a state and a window";
}

TEST_F(ClaimingAlertsActor, EndsWhenTheBooksOfWhatCameLastAreThere) {
  show(2);
  show(4);
  self_->monitor(alerts_);
  self_->send(alerts_, stop_atom_v);
  answers();
  EXPECT_FALSE(ended()) << "what came last is not told yet";
  self_->send(alerts_, std::make_shared<const SeriesBooks>(SeriesBooks{"gate", 7, 0, 0, {}, {}}));
  answers();
  EXPECT_EQ(ended(), "none");
  EXPECT_THAT(publisher_.messages, SizeIs(1));
}

TEST_F(ClaimingAlertsActor, EndsAfterAMomentWithoutTheBooks) {
  show(2);
  self_->monitor(alerts_);
  self_->send(alerts_, stop_atom_v);
  answers();
  pass(1900ms);
  EXPECT_FALSE(ended());
  pass(200ms);
  EXPECT_THAT(ended().value_or(""), HasSubstr("1 event is lost: nobody said where their series go on"));
}

}  // namespace
}  // namespace vigil::actors
