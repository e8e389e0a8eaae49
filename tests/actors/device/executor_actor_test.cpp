// What the one thread of a device does with its two parts, and with the target that goes on elsewhere.
#include "actors/device/executor_actor.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "actors/target/target_actor.h"
#include "tests/actors/patches.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::SizeIs;

std::shared_ptr<OwnCamera> explaining(const std::string& name, config::Pace pace = config::Pace::fast) {
  auto settings = camera(name, pace, name);
  settings->rules[0].explain = true;
  settings->rules[0].max_tokens = 16;
  return settings;
}

/// One device, whose answers go on at another one.
class DecodeElsewhereTest : public PipelineTest {
 protected:
  DecodeElsewhereTest() { decoder_.passes.other = &language_.passes; }
  std::vector<DeviceSlot> devices() override {
    return {DeviceSlot{"cuda:0", parts(encoder_, language_, &decoder_), {}}};
  }
  static bool is_empty(const ScriptedLanguage& language) {
    return language.book.free_pages() == language.book.pages();
  }
  std::vector<json> descriptions() const {
    std::vector<json> result;
    for (const auto& message : publisher_.messages)
      if (const json data = json::parse(message.body).at("data"); data.value("phase", "") == "new")
        result.push_back(data.at("description"));
    return result;
  }
  ScriptedLanguage decoder_;
};

TEST_F(DecodeElsewhereTest, TextsGoOnThereAndAllPagesComeBack) {
  for (const char* name : {"a", "b"}) sources_.add(name, frames(std::vector<int>(24, 90)));
  start({explaining("a"), explaining("b")});
  EXPECT_THAT(descriptions(), ElementsAre("Yes, a 90.", "Yes, a 90."));
  EXPECT_THAT(language_.passes.generated, SizeIs(0)) << "no text goes on where it was asked";
  EXPECT_THAT(decoder_.passes.generated, Not(SizeIs(0)));
  EXPECT_TRUE(is_empty(language_));
  EXPECT_TRUE(is_empty(decoder_));
  const auto alerts = told("alert/");
  const auto ends = std::count_if(alerts.begin(), alerts.end(),
                                  [](const std::string& each) { return each.ends_with(" end"); });
  EXPECT_EQ(metric("vigil_request_decode_time_seconds_count"),
            static_cast<double>(alerts.size()) - static_cast<double>(ends));
  EXPECT_TRUE(outcome()->complete);
}

// What lies before its window is with the device that it was asked on.
TEST_F(DecodeElsewhereTest, TextsOfWindowsWithAMemoryStay) {
  sources_.add("a", frames(std::vector<int>(24, 90)));
  auto settings = explaining("a");
  settings->stream.pruning = {.policy = config::Pruning::none, .refresh = config::Refresh::none};
  settings->stream.window.memory = 10min;
  start({settings});
  EXPECT_THAT(descriptions(), ElementsAre("Yes, a 90."));
  EXPECT_THAT(language_.passes.generated, Not(SizeIs(0)));
  EXPECT_THAT(decoder_.passes.generated, SizeIs(0));
  EXPECT_TRUE(is_empty(language_));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(DecodeElsewhereTest, ATextThatFailsThereIsGivenBack) {
  sources_.add("a", frames(std::vector<int>(24, 99)));
  start({explaining("a")});
  EXPECT_THAT(descriptions(), ElementsAre(nullptr));
  EXPECT_THAT(log_.str(), HasSubstr("alerts: camera a: no explanation for rule person: no words"));
  EXPECT_TRUE(is_empty(language_));
  EXPECT_TRUE(is_empty(decoder_));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(DecodeElsewhereTest, WhatIsLostThereTakesTheDeviceWithIt) {
  decoder_.passes.on_generate = [](std::size_t) { throw run::DeviceLost("unspecified launch failure"); };
  sources_.add("a", frames(std::vector<int>(400, 90)));
  start({explaining("a", config::Pace::realtime)}, /*once=*/false);
  pass(6s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->failures,
              ElementsAre("no device is left: cuda:0 is lost: the target actor failed: unspecified launch "
                          "failure"));
}

/// One device whose vision tower has a thread of its own.
class TowerBesideTest : public PipelineTest {
 protected:
  std::vector<DeviceSlot> devices() override {
    DeviceSlot slot{"cpu", parts(encoder_, language_), {}};
    slot.engine.overlap = true;
    return {std::move(slot)};
  }
};

TEST_F(TowerBesideTest, EveryFrameBecomesPartOfItsWindows) {
  std::vector<std::string> pieces;
  observer_.piece = [&](const char* stage, const WorkSpan&) { pieces.emplace_back(stage); };
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b", "c"}) {
    sources_.add(name, frames(std::vector<int>(24, 90)));
    cameras.push_back(explaining(name));
  }
  start(cameras);
  EXPECT_EQ(encoder_.frames, 3 * 24U);
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 3 * 6);
  for (const char* name : {"a", "b", "c"}) {
    const std::string rule = std::string(name) + "/person ";
    EXPECT_THAT(told("alert/"), IsSupersetOf({rule + "new", rule + "end"}));
  }
  EXPECT_THAT(pieces, AllOf(Contains("vision"), Contains("language")));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(TowerBesideTest, PatchesOfManyCamerasAreEncodedAtOnce) {
  std::size_t most = 0;
  encoder_.on_encode = [&] { most = std::max(most, encoder_.batches.back()); };
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h", "i"}) {
    sources_.add(name, frames(std::vector<int>(16, 10)));
    cameras.push_back(camera(name, config::Pace::fast, name));
  }
  start(cameras);
  EXPECT_EQ(most, 8U);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 9 * 4);
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(TowerBesideTest, APatchThatCannotBeEncodedIsToldAndTheRestGoesOn) {
  std::vector<int> values(24, 90);
  values[8] = values[9] = 255;
  sources_.add("a", frames(values));
  start({explaining("a")});
  EXPECT_EQ(metric("vigil_frames_dropped_total{camera=\"a\",reason=\"encode_failed\"}"), 2);
  EXPECT_EQ(times_logged("vision: camera a: frames dropped: "), 1);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"answered\"}"), 5);
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(TowerBesideTest, WhatTheTowerLosesTakesTheDeviceWithIt) {
  sources_.add("a", frames(std::vector<int>(400, 90)));
  start({explaining("a", config::Pace::realtime)}, /*once=*/false);
  pass(6s);
  encoder_.on_encode = [] { throw run::DeviceLost("a memory module failed"); };
  pass(3s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->failures,
              ElementsAre("no device is left: cpu is lost: the tower actor failed: a memory module failed"));
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty()) << "what was found is told";
}

/// An executor that is asked by hand; what it would tell alerts is kept.
class ExecutorTest : public ::testing::Test {
 protected:
  void settle() {
    auto& scheduler = dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler());
    while (scheduler.try_run_once()) {
    }
  }
  void pass(base::Duration span) {
    clock_.advance(span);
    dynamic_cast<caf::scheduler::test_coordinator&>(system_.scheduler()).advance_time(span);
    settle();
  }
  ~ExecutorTest() override {
    self_->send(executor_, stop_atom_v);
    settle();
  }
  /// The window of a camera that shows these values.
  void show(const WatchPtr& watch, const std::vector<int>& values) {
    self_->send(executor_, join_atom_v, watch, std::uint32_t{0});
    for (std::size_t i = 0; i < values.size(); ++i)
      self_->send(executor_, FramePatchPtr(frame_patch(watch, static_cast<double>(i),
                                                       static_cast<std::uint8_t>(values[i]))));
    settle();
  }
  bool is_empty() const { return language_.book.free_pages() == language_.book.pages(); }

  ManualClock clock_;
  FakeEncoder encoder_;
  ScriptedLanguage language_;
  std::shared_ptr<int> owner_ = std::make_shared<int>();
  const std::weak_ptr<int> engine_ = owner_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  TestConfig config_;
  caf::actor_system system_{config_};
  caf::scoped_actor self_{system_};
  std::vector<WindowAnswersPtr> answered_;
  std::vector<Explanation> explained_;
  executor_actor executor_ =
      system_.spawn(executor,
                    ExecutorDeps{parts(encoder_, language_, nullptr, std::exchange(owner_, nullptr)), clock_,
                                 metrics_, board_, logger_},
                    system_.spawn([this](alerts_actor::pointer self) -> alerts_actor::behavior_type {
                      return {
                          [self](join_atom) {
                            self->send(caf::actor_cast<stream_actor>(self->current_sender()), grant_atom_v,
                                       std::uint32_t{9});
                          },
                          [this](const WindowAnswersPtr& window) { answered_.push_back(window); },
                          [this](const Explanation& explanation) { explained_.push_back(explanation); },
                          [](const EvidenceReport&) {},
                          [](const WatchPtr&) {},
                          [](forget_atom, const std::string&) {},
                          [](const StatusChange&) {},
                          [](const SeriesBooksPtr&) {},
                          [](removed_atom, const std::string&) {},
                          [](lost_atom, const std::string&, std::uint64_t) {},
                          [](force_atom) {},
                          [](end_atom, const std::string&) {},
                          [](work_atom) {},
                          [](tick_atom) {},
                          [](stop_atom) {},
                      };
                    }),
                    target_actor(), tower_actor());
};

TEST_F(ExecutorTest, ExplainsWhatItWasAskedAndLetsGoOfTheRest) {
  auto settings = explaining("gate");
  settings->rules.push_back(settings->rules[0]);
  settings->rules[1].name = "car";
  show(watched(*settings), {90, 90});
  ASSERT_THAT(answered_, SizeIs(1));
  const stream::WindowId id = answered_[0]->id.value();
  self_->send(executor_, Explain{id, 1, 77});
  self_->send(executor_, Done{id});
  settle();
  EXPECT_THAT(explained_, ElementsAre(Explanation{77, "Yes, a 90.", ""}));
  EXPECT_TRUE(is_empty());
}

TEST_F(ExecutorTest, WhatIsNotThereAnyMoreIsToldAtOnce) {
  show(watched(*explaining("gate")), {90, 90});
  ASSERT_THAT(answered_, SizeIs(1));
  stream::WindowId id = answered_[0]->id.value();
  const Explanation gone{5, "", "the window has left the cache"};
  for (const auto& wrong :
       {stream::WindowId{"yard", id.epoch, id.number}, stream::WindowId{"gate", id.epoch + 1, id.number},
        stream::WindowId{"gate", id.epoch, id.number + 1}}) {
    explained_.clear();
    self_->send(executor_, Explain{wrong, 0, 5});
    settle();
    EXPECT_THAT(explained_, ElementsAre(gone));
  }
  self_->send(executor_, Done{id});
  self_->send(executor_, Explain{id, 0, 5});
  settle();
  EXPECT_THAT(explained_, ElementsAre(gone, gone));
}

TEST_F(ExecutorTest, TakesBackWhatNobodyAsksForAtItsDeadline) {
  show(watched(*explaining("gate")), {90, 90});
  ASSERT_THAT(answered_, SizeIs(1));
  EXPECT_FALSE(is_empty());
  pass(kExplanationPatience - 2s);
  EXPECT_FALSE(is_empty());
  pass(3s);
  EXPECT_TRUE(is_empty());
}

// A patch is a token, and a page of eight bytes all that the camera may have.
TEST_F(ExecutorTest, TellsACameraAndTheLogWhatItsBudgetCallsFor) {
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.window = {20s, 2s};
  settings->stream.pruning.policy = config::Pruning::scene;
  settings->stream.pruning.kv_budget = {8};
  const WatchPtr gate = watched(*settings);
  metrics_.camera_added(*gate);
  self_->send(executor_, join_atom_v, gate, std::uint32_t{0});
  std::vector<double> shares;
  for (int i = 0; i < 24; ++i) {
    self_->send(executor_, FramePatchPtr(frame_patch(gate, i, 90)));
    settle();
    bool is_heard = false;
    self_->receive_while([&] { return !is_heard; })(
        [&](const PatchAck& ack) {
          shares.push_back(ack.advice.share);
          is_heard = true;
        },
        [](grant_atom, const std::string&, std::uint32_t) {});
  }
  ASSERT_THAT(shares, SizeIs(24));
  EXPECT_EQ(shares[6], 1);
  EXPECT_DOUBLE_EQ(shares[7], 6.0 / 18) << "of eighteen beside two whole ones";
  for (const auto& window : answered_) EXPECT_LE(window->frames, 16);
  ASSERT_FALSE(answered_.empty());
  EXPECT_EQ(answered_.back()->end - answered_.back()->start, 8);
  const auto lines = [&](const std::string& text) {
    int count = 0;
    for (std::size_t at = log_.str().find(text); at != std::string::npos; at = log_.str().find(text, at + 1))
      ++count;
    return count;
  };
  EXPECT_EQ(lines("[info] stream: camera gate: its windows of 8 visual tokens come near its budget of 8B"),
            1);
  EXPECT_EQ(lines("[warning] stream: camera gate: its windows do not fit its budget of 8B (8 visual tokens)"),
            1);
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_camera_forgotten_tokens_total{camera=\"gate\",tenant=\"north\"} 16\n"));
  EXPECT_THAT(metrics_.text(),
              HasSubstr("vigil_camera_kv_budget_usage_ratio{camera=\"gate\",tenant=\"north\"} 1\n"));
}

TEST_F(ExecutorTest, TellsTheDeskAndTheMetricsOfWhatWindowsRemember) {
  self_->send(executor_, join_atom_v, watch("yard"), std::uint32_t{0});
  settle();
  EXPECT_EQ(language_.desk.memory("yard"), 0s);
  for (const char* series : {"vigil_window_memory_tokens{device=\"\"} 0\n",
                             "vigil_window_memory_bytes{device=\"\",where=\"host\"} 0\n",
                             "vigil_window_memory_bytes{device=\"\",where=\"device\"} 0\n",
                             "vigil_window_memory_room_bytes{device=\"\"} 0\n"})
    EXPECT_THAT(metrics_.text(), HasSubstr(series)) << "nothing is remembered";
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.window.memory = 10min;
  settings->stream.pruning.refresh = config::Refresh::none;
  self_->send(executor_, join_atom_v, watched(*settings), std::uint32_t{0});
  settle();
  EXPECT_EQ(language_.desk.memory("gate"), 10min);
}

TEST_F(ExecutorTest, TellsCamerasWhetherItIsBehindButForThoseThatLoseNothing) {
  const auto behind = [&](const WatchPtr& watch, double seconds, base::Duration age) {
    auto patch = frame_patch(watch, seconds, 90);
    patch->captured.steady = clock_.now() - age;
    self_->send(executor_, FramePatchPtr(std::move(patch)));
    settle();
    bool is_behind = false, is_heard = false;
    self_->receive_while([&] { return !is_heard; })(
        [&](const PatchAck& ack) {
          is_behind = ack.advice.is_behind;
          is_heard = true;
        },
        [](grant_atom, const std::string&, std::uint32_t) {});
    return is_behind;
  };
  const WatchPtr file = watched(*camera("file", config::Pace::fast));
  const WatchPtr gate = watched(*camera("gate", config::Pace::realtime));
  for (const WatchPtr& watch : {file, gate}) self_->send(executor_, join_atom_v, watch, std::uint32_t{0});
  EXPECT_FALSE(behind(file, 0, 60s));
  EXPECT_FALSE(behind(gate, 0, 1s));
  EXPECT_TRUE(behind(gate, 1, 3s));
  EXPECT_TRUE(behind(file, 1, 0s)) << "the device is";
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_device_behind{device=\"\"} 1\n"));
  pass(31s);
  EXPECT_FALSE(behind(gate, 2, 0s));
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_device_behind{device=\"\"} 0\n"));
}

TEST_F(ExecutorTest, CountsWhatLeavesAStream) {
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.pruning.refresh = config::Refresh::none;
  const WatchPtr gate = watched(*settings);
  show(gate, {90, 90, 90, 90, 90, 90});
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_kv_left_tokens_total{reason=\"slid\"} 2\n"))
      << "what the last window showed and the next one will not; the windows before were overtaken";
  self_->send(executor_, end_atom_v, std::string("gate"));
  settle();
  EXPECT_THAT(metrics_.text(), HasSubstr("vigil_kv_left_tokens_total{reason=\"closed\"} 2\n"));
  EXPECT_TRUE(is_empty());
}

TEST_F(ExecutorTest, ItsPartOfTheEngineIsThereAsLongAsItIs) {
  EXPECT_FALSE(engine_.expired()) << "whoever started it has none any more";
  show(watched(*explaining("gate")), {90, 90});
  EXPECT_THAT(answered_, SizeIs(1));
  EXPECT_FALSE(engine_.expired());
  self_->send(executor_, stop_atom_v);
  settle();
  EXPECT_TRUE(engine_.expired()) << "the next one needs its room";
}

}  // namespace
}  // namespace vigil::actors
