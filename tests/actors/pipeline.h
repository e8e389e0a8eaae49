// A whole pipeline under the deterministic scheduler: nothing happens but by `settle`, and time passes only
// when it is told to.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>
#include <caf/scheduler/test_coordinator.hpp>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/messages/types.h"
#include "actors/supervisor/supervisor_actor.h"
#include "tests/actors/fakes.h"
#include "tests/actors/scripted_language.h"

namespace vigil::actors::testing {

class TestConfig : public caf::actor_system_config {
 public:
  TestConfig() {
    set("scheduler.policy", caf::atom("testing"));
    know_messages(*this);
  }
};

class PipelineTest : public ::testing::Test {
 protected:
  void TearDown() override {
    caf::anon_send(supervisor_, stop_atom_v);
    for (int second = 0; second < 20 && !outcome(); ++second) pass(1s);
    EXPECT_TRUE(outcome_.has_value()) << "the grace period bounds every end";
  }

  caf::scheduler::test_coordinator& scheduler() {
    return dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
  }

  void start(std::vector<CameraPtr> cameras, bool once = true) {
    start(std::move(cameras), once, sources_.factory());
  }

  void start(std::vector<CameraPtr> cameras, bool once, ReaderFactory open,
             std::optional<EvidenceParts> evidence = {}) {
    supervisor_ = system_.spawn(supervisor, PipelineDeps{.cameras = std::move(cameras),
                                                         .once = once,
                                                         .grace = 10s,
                                                         .retention = 24h,
                                                         .model_id = "fake",
                                                         .open = std::move(open),
                                                         .reach = reach_,
                                                         .dial = dial_,
                                                         .shape = {2, {}},
                                                         .devices = devices(),
                                                         .outbox = *outbox_,
                                                         .publisher = publisher_,
                                                         .metrics = metrics_,
                                                         .board = board_,
                                                         .clock = clock_,
                                                         .logger = logger_,
                                                         .seed = 1,
                                                         .threads = Threads::scheduled,
                                                         .evidence = evidence,
                                                         .observer = observer_,
                                                         .claims = claims_});
    settle();
  }

  /// On what the cameras are watched.
  virtual std::vector<DeviceSlot> devices() { return {slot(encoder_, language_)}; }

  virtual void settle() {
    while (scheduler().try_run_once()) {
    }
  }

  /// Lets both clocks go on, in steps that are short beside every timer.
  void pass(base::Duration span) {
    settle();
    for (base::Duration step(0); step < span; step += 50ms) {
      clock_.advance(50ms);
      scheduler().advance_time(50ms);
      settle();
    }
  }

  /// How the run ended, if it did. Asks once, since the supervisor quits when it has answered.
  std::optional<DrainReport> outcome() {
    if (!asked_) asked_.emplace(waiter_->request(supervisor_, caf::infinite, wait_atom_v));
    settle();
    if (!outcome_ && waiter_->has_next_message()) {
      asked_->receive([&](const DrainReport& report) { outcome_ = report; },
                      [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    }
    return outcome_;
  }

  /// "camera/rule phase" or "camera state" of all that was published.
  std::vector<std::string> told(const std::string& prefix = "") const {
    std::vector<std::string> result;
    for (const auto& message : publisher_.messages) {
      if (!message.topic.starts_with(prefix)) continue;
      const nlohmann::json data = nlohmann::json::parse(message.body).at("data");
      result.push_back(data.contains("rule")
                           ? data.at("camera").get<std::string>() + '/' + data.at("rule").get<std::string>() +
                                 ' ' + data.at("phase").get<std::string>()
                           : data.at("camera").get<std::string>() + ' ' +
                                 data.at("state").get<std::string>());
    }
    return result;
  }

  /// Of all series of this name that have these labels, and maybe others, together: name{label="value",...}.
  double metric(const std::string& name) const {
    double sum = 0;
    const std::string family = name.substr(0, name.find('{'));
    std::vector<std::string> labels;
    for (std::size_t begin = family.size() + 1; begin < name.size();) {
      const std::size_t end = name.find("\"", name.find("=\"", begin) + 2) + 1;
      labels.push_back(name.substr(begin, end - begin));
      begin = end + 1;
    }
    std::istringstream lines(metrics_.text());
    for (std::string line; std::getline(lines, line);) {
      const std::size_t space = line.rfind(' ');
      const std::string series = line.substr(0, space);
      if (series.substr(0, series.find('{')) != family) continue;
      if (std::all_of(labels.begin(), labels.end(),
                      [&](const auto& label) { return series.find(label) != std::string::npos; }))
        sum += std::stod(line.substr(space + 1));
    }
    return sum;
  }

  int times_logged(const std::string& text) const {
    const std::string log = log_.str();
    int times = 0;
    for (auto at = log.find(text); at != std::string::npos; at = log.find(text, at + 1)) ++times;
    return times;
  }

  ManualClock clock_;
  FakeSources sources_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  FakePublisher publisher_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  PipelineObserver observer_;
  ReachFactory reach_;
  Dialer::Limits dial_;
  TestConfig config_;
  caf::actor_system system_{config_};
  /// Null: the process is alone.
  claims_actor claims_;
  supervisor_actor supervisor_;
  caf::scoped_actor waiter_{system_};
  using Asked = decltype(std::declval<caf::scoped_actor&>()->request(std::declval<supervisor_actor&>(),
                                                                     caf::infinite, wait_atom_v));
  std::optional<Asked> asked_;
  std::optional<DrainReport> outcome_;
};

}  // namespace vigil::actors::testing
