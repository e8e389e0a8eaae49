// What the shell around the desk does with a mailbox that is full.
#include "actors/alerts/alerts_actor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/events.h"
#include "tests/actors/pipeline.h"
#include "tests/actors/watched_outbox.h"

namespace vigil::actors {
namespace {

using namespace testing;
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

}  // namespace
}  // namespace vigil::actors
