// The status is told by message: at once, in a form that travels, by an actor for whom nobody waits.
#include "actors/status/status_actor.h"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <caf/all.hpp>
#include <caf/binary_deserializer.hpp>
#include <caf/binary_serializer.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;

class StatusActor : public ::testing::Test {
 protected:
  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  /// What is answered when all that can happen has happened; nothing for an error.
  template <class Atom>
  std::optional<StatusReport> ask(Atom what) {
    const caf::scoped_actor self{system_, true};
    auto asked = self->request(status_, caf::infinite, what);
    while (scheduler().try_run_once()) {
    }
    std::optional<StatusReport> report;
    if (!self->has_next_message()) {
      ADD_FAILURE() << "no answer";
      return report;
    }
    asked.receive([&](const StatusReport& told) { report = told; }, [](const caf::error&) {});
    return report;
  }

  /// As another node gets it.
  StatusReport through(const StatusReport& report) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    caf::message sent = caf::make_message(report);
    EXPECT_FALSE(sink(sent));
    caf::message read;
    caf::binary_deserializer source(system_, bytes);
    if (const auto error = read.load(source)) ADD_FAILURE() << system_.render(error);
    if (read.match_elements<StatusReport>()) return read.get_as<StatusReport>(0);
    ADD_FAILURE() << "another message";
    return {};
  }

  /// Whether what is written of it cannot be read.
  bool is_refused(StatusReport report) {
    std::vector<char> bytes;
    caf::binary_serializer sink(system_, bytes);
    EXPECT_FALSE(sink(report));
    caf::binary_deserializer source(system_, bytes);
    StatusReport read;
    return static_cast<bool>(source(read));
  }

  ManualClock clock_;
  Metrics metrics_;
  StatusBoard board_{clock_, 10s};
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  TestConfig config_;
  caf::actor_system system_{config_};
  status_actor status_ = system_.spawn<caf::hidden>(status, StatusDeps{board_, metrics_, logger_});
};

TEST_F(StatusActor, TellsAProbeWhatTheBoardSays) {
  EXPECT_EQ(ask(probe_atom_v), (StatusReport{.phase = RunPhase::starting, .live = true}));
  board_.phase(RunPhase::running);
  EXPECT_EQ(ask(probe_atom_v),
            (StatusReport{.phase = RunPhase::running, .live = true, .started = true, .ready = true}));
  clock_.advance(11s);
  EXPECT_EQ(ask(probe_atom_v),
            (StatusReport{.phase = RunPhase::running, .started = true, .late = {"supervisor"}}));
  board_.phase(RunPhase::draining);
  EXPECT_EQ(ask(probe_atom_v), (StatusReport{.phase = RunPhase::draining, .live = true, .started = true}));
}

TEST_F(StatusActor, TellsPeopleAllOfIt) {
  board_.phase(RunPhase::running);
  board_.camera(*watch("gate"), CameraState::down, "Connection refused");
  const auto told = ask(status_atom_v);
  ASSERT_TRUE(told.has_value());
  EXPECT_EQ(told->page, board_.json(metrics_));
  EXPECT_EQ(nlohmann::json::parse(told->page).at("cameras").at(0).at("reason"), "Connection refused");
  StatusReport rest = *told;
  rest.page.clear();
  EXPECT_EQ(rest, board_.report());
}

TEST_F(StatusActor, NoProbeWaitsForAPage) {
  const caf::scoped_actor people{system_, true};
  auto page = people->request(status_, caf::infinite, status_atom_v);
  ASSERT_TRUE(scheduler().try_run_once());
  EXPECT_FALSE(people->has_next_message()) << "it is yet to be made";
  const caf::scoped_actor kubelet{system_, true};
  auto probe = kubelet->request(status_, caf::infinite, probe_atom_v);
  ASSERT_TRUE(scheduler().prioritize(status_));
  ASSERT_TRUE(scheduler().try_run_once());
  EXPECT_TRUE(kubelet->has_next_message());
  EXPECT_FALSE(people->has_next_message());
  while (scheduler().try_run_once()) {
  }
  bool told = false;
  page.receive([&](const StatusReport& report) { told = !report.page.empty(); }, [](const caf::error&) {});
  EXPECT_TRUE(told);
  probe.receive([](const StatusReport&) {}, [](const caf::error&) { ADD_FAILURE(); });
}

TEST_F(StatusActor, NobodyWaitsForItsEndAndWhoAsksAfterItIsToldSo) {
  EXPECT_EQ(system_.registry().running(), 0U) << "a drain is over without it";
  caf::anon_send(status_, stop_atom_v);
  EXPECT_EQ(ask(probe_atom_v), std::nullopt);
  EXPECT_EQ(ask(status_atom_v), std::nullopt);
}

TEST_F(StatusActor, AReportComesBackAsItWas) {
  for (const RunPhase phase : {RunPhase::starting, RunPhase::running, RunPhase::draining}) {
    const StatusReport report{.phase = phase,
                              .live = true,
                              .started = phase != RunPhase::starting,
                              .ready = phase == RunPhase::running,
                              .late = {"evidence", "cuda:0 \xe4\xba\xba"},
                              .page = R"({"phase":"any"})"};
    EXPECT_EQ(through(report), report);
  }
  const StatusReport late{.phase = RunPhase::running, .started = true, .late = {"alerts"}};
  EXPECT_EQ(through(late), late);
}

TEST_F(StatusActor, AReportThatContradictsItselfIsRefused) {
  const StatusReport good{.phase = RunPhase::running, .live = true, .started = true, .ready = true};
  EXPECT_FALSE(is_refused(good));
  StatusReport bad = good;
  bad.phase = static_cast<RunPhase>(3);
  EXPECT_TRUE(is_refused(bad));
  bad = good;
  bad.phase = RunPhase::draining;
  EXPECT_TRUE(is_refused(bad)) << "ready, and takes no frames";
  bad = good;
  bad.live = false;
  EXPECT_TRUE(is_refused(bad)) << "ready, and hangs";
  bad = good;
  bad.started = false;
  EXPECT_TRUE(is_refused(bad)) << "running, and did not start";
  bad = good;
  bad.phase = RunPhase::starting;
  bad.ready = false;
  EXPECT_TRUE(is_refused(bad)) << "started, and is starting";
}

}  // namespace
}  // namespace vigil::actors
