// Whether a process that does nothing any more is told from one that waits: on real threads, with a clock
// that is told the time.
#include <atomic>
#include <future>
#include <thread>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/null_sink.h>

#include "actors/messages/types.h"
#include "actors/status/work_beat.h"
#include "actors/supervisor/supervisor_actor.h"
#include "cluster/process/system.h"
#include "tests/actors/fakes.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors {
namespace {

using namespace testing;

/// Blocks, once it is told to, until it is released; then it does not any more.
class Gate {
 public:
  void close() { closed_ = true; }
  void pass() {
    if (!closed_.exchange(false)) return;
    reached_.set_value();
    open_.get_future().wait();
  }
  void await_reached() { reached_.get_future().wait(); }
  void open() { open_.set_value(); }

 private:
  std::atomic<bool> closed_{false};
  std::promise<void> reached_;
  std::promise<void> open_;
};

/// Hangs while an event is sent, as it would while one is written to a disk that does not answer.
class HungPublisher final : public FakePublisher {
 public:
  explicit HungPublisher(Gate& gate) : gate_(gate) {}
  bool publish(const OutboxEvent& event) override {
    gate_.pass();
    return FakePublisher::publish(event);
  }

 private:
  Gate& gate_;
};

class Liveness : public ::testing::Test {
 protected:
  void start(bool overlap = false) {
    DeviceSlot device = slot(encoder_, language_);
    device.engine.overlap = overlap;
    sources_.add("/clips/gate.mp4", frames(std::vector<int>(40, 90)));
    handle_ = system_.spawn(supervisor, PipelineDeps{.cameras = {camera()},
                                                     .once = false,
                                                     .grace = 10s,
                                                     .retention = 24h,
                                                     .model_id = "fake",
                                                     .open = sources_.factory(),
                                                     .shape = {2, {}},
                                                     .devices = {device},
                                                     .outbox = *outbox_,
                                                     .publisher = publisher_,
                                                     .metrics = metrics_,
                                                     .board = board_,
                                                     .clock = clock_,
                                                     .logger = logger_,
                                                     .seed = 1,
                                                     .threads = Threads::own});
  }
  void TearDown() override {
    caf::anon_send(handle_, stop_atom_v);
    caf::scoped_actor self{system_};
    self->request(handle_, 30s, wait_atom_v)
        .receive([](const DrainReport&) {},
                 [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
  }

  /// Waits until those are late and no others: who is well speaks within a second.
  void expect_late(const std::vector<std::string>& names) {
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (board_.late() != names && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(board_.late(), names);
  }

  struct Config : cluster::SystemConfig {
    Config() { know_messages(*this); }
  };

  Gate gate_;
  Gate work_;
  ManualClock clock_;
  FakeSources sources_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  HungPublisher publisher_{gate_};
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::null_sink_mt>()};
  Config config_;
  caf::actor_system system_{config_};
  supervisor_actor handle_;
};

TEST_F(Liveness, AnAlertsActorThatHangsIsNamedAndTheProcessIsNotAlive) {
  gate_.close();
  start();
  gate_.await_reached();
  clock_.advance(kAlertsPatience);
  expect_late({});
  EXPECT_TRUE(board_.live());
  clock_.advance(1s);
  expect_late({"alerts"});
  EXPECT_FALSE(board_.live());
  EXPECT_EQ(nlohmann::json::parse(board_.json(metrics_)).at("late"), nlohmann::json({"alerts"}));
  gate_.open();
  expect_late({});
  EXPECT_TRUE(board_.live());
}

TEST_F(Liveness, APassThatHangsIsNamedWhenNoPassTakesSoLong) {
  encoder_.on_encode = [this] { work_.pass(); };
  work_.close();
  start();
  work_.await_reached();
  clock_.advance(WorkPatience::kMost);
  expect_late({});
  clock_.advance(1s);
  expect_late({"cpu executor"});
  EXPECT_FALSE(board_.live());
  work_.open();
  expect_late({});
}

TEST_F(Liveness, ATowerThatHangsIsNamedWhereItHasAThreadOfItsOwn) {
  encoder_.on_encode = [this] { work_.pass(); };
  work_.close();
  start(/*overlap=*/true);
  work_.await_reached();
  clock_.advance(WorkPatience::kMost + 1s);
  expect_late({"cpu tower"});
  EXPECT_FALSE(board_.live());
  work_.open();
  expect_late({});
}

}  // namespace
}  // namespace vigil::actors
