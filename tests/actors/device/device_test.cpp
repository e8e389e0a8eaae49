// What becomes of cameras when the device that watches them runs out of memory, fails or is lost: engines
// that throw, under the deterministic scheduler.
#include <memory>
#include <new>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "engine/run/vision_encoder.h"
#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Le;
using ::testing::Not;

/// As a GPU says it.
class NoRoom : public std::bad_alloc {
 public:
  const char* what() const noexcept override { return "GPU 0 has no room for 147 MiB"; }
};

std::shared_ptr<OwnCamera> live(const std::string& name) {
  return camera(name, config::Pace::realtime, name);
}

// --- Out of memory ----------------------------------------------------------------------------------------

TEST_F(PipelineTest, PatchesThatDoNotFitIntoOnePassAreEncodedInSmallerOnes) {
  encoder_.on_encode = [this] {
    if (encoder_.batches.back() > 2) throw NoRoom();
  };
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    sources_.add(name, frames(std::vector<int>(16, 10)));
    cameras.push_back(camera(name, config::Pace::fast, name));
  }
  start(cameras);
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}"), 6 * 4);
  EXPECT_EQ(metric("vigil_frames_dropped_total"), 0);
  EXPECT_THAT(log_.str(),
              HasSubstr("vision: 0 of 8 patches dropped, passes of at most 4 from now on: GPU 0 has no "
                        "room for 147 MiB"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, APatchForWhichThereIsNoRoomAtAllIsCountedAndThePipelineGoesOn) {
  int refused = 0;
  encoder_.on_encode = [&] {
    if (++refused <= 3) throw NoRoom();
  };
  sources_.add("gate", frames(std::vector<int>(32, 10)));
  start({live("gate")});
  pass(20s);
  EXPECT_EQ(metric("vigil_frames_dropped_total{camera=\"gate\",reason=\"out_of_memory\"}"), 6);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"answered\"}"), 7);
  EXPECT_THAT(log_.str(), HasSubstr("vision: 1 of 1 patches dropped"));
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, WindowsForWhichThereIsNoRoomAreRefusedWithTheReasonAndPassesShrink) {
  language_.passes.on_ask = [this](std::size_t windows) {
    if (windows > 1 || language_.passes.asked.size() < 4) throw NoRoom();
  };
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b", "c", "d"}) {
    sources_.add(name, frames(std::vector<int>(16, 10)));
    cameras.push_back(camera(name, config::Pace::fast, name));
  }
  start(cameras);
  const double refused = metric("vigil_windows_total{outcome=\"out_of_memory\"}");
  EXPECT_EQ(metric("vigil_windows_total{outcome=\"answered\"}") + refused, 4 * 4);
  EXPECT_EQ(language_.passes.asked.back(), 1U);
  EXPECT_THAT(log_.str(), HasSubstr("stream: passes of at most "));
  EXPECT_THAT(log_.str(), HasSubstr(" rows from now on: GPU 0 has no room for 147 MiB"));
  EXPECT_EQ(metric("vigil_kv_cache_usage_ratio{device=\"cpu\",tier=\"host\"}"), 0)
      << "its room is free again";
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(PipelineTest, AnAlertWhoseTextHasNoRoomIsToldWithout) {
  language_.passes.on_generate = [](std::size_t) { throw NoRoom(); };
  auto settings = camera();
  settings->rules[0].explain = true;
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(8, 90)));
  start({settings});
  EXPECT_THAT(told("alert/"), ElementsAre("gate/person new", "gate/person end"));
  const auto alert = std::find_if(publisher_.messages.begin(), publisher_.messages.end(),
                                  [](const auto& message) { return message.topic.starts_with("alert/"); });
  EXPECT_EQ(json::parse(alert->body).at("data").at("description"), nullptr);
  EXPECT_THAT(language_.passes.generated, ElementsAre(1U)) << "one that has no room alone is not tried again";
  EXPECT_THAT(
      log_.str(),
      HasSubstr("alerts: camera gate: no explanation for rule person: GPU 0 has no room for 147 MiB"));
  EXPECT_TRUE(outcome()->complete);
}

/// One device whose cache has no room for a window of full length.
class SmallDeviceTest : public PipelineTest {
 protected:
  std::vector<DeviceSlot> devices() override { return {slot(encoder_, small_)}; }
  std::int64_t needed_ = language_.pages_of(4, live("gate")->rules);
  ScriptedLanguage small_{needed_ - 1};
};

TEST_F(SmallDeviceTest, WindowsThatCanNeverFitTheCacheAreToldOnceAndInTheStatus) {
  sources_.add("gate", frames(std::vector<int>(400, 10)));
  start({live("gate")}, /*once=*/false);
  pass(21s);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"failed\"}"), 8);
  const json status = json::parse(board_.json(metrics_)).at("cameras").at(0);
  EXPECT_EQ(status.at("state"), "up");
  const std::string told = "a window of 4s needs " + std::to_string(8 * needed_) +
                           " tokens of KV cache, there is room for " + std::to_string(8 * (needed_ - 1));
  EXPECT_THAT(status.at("reason").get<std::string>(), HasSubstr(told));
  EXPECT_EQ(times_logged("stream: camera gate: " + told), 1);
  EXPECT_EQ(times_logged("stream: camera gate: no answer about a window: a window with 1 question needs "),
            1);
}

// --- One device -------------------------------------------------------------------------------------------

TEST_F(PipelineTest, WithoutADeviceThatIsLeftTheRunEndsAndSaysWhy) {
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  start({live("gate")}, /*once=*/false);
  pass(6s);
  EXPECT_THAT(told("alert/"), Contains("gate/person new"));
  EXPECT_EQ(metric("vigil_device_up{device=\"cpu\"}"), 1);
  EXPECT_TRUE(board_.ready());
  encoder_.on_encode = [] { throw run::DeviceLost("unspecified launch failure"); };
  pass(2s);
  EXPECT_EQ(metric("vigil_device_up{device=\"cpu\"}"), 0);
  EXPECT_EQ(metric("vigil_device_state{device=\"cpu\",state=\"lost\"}"), 1);
  EXPECT_FALSE(board_.ready());
  const json status = json::parse(board_.json(metrics_)).at("devices").at(0);
  EXPECT_EQ(status.at("state"), "lost");
  EXPECT_EQ(status.at("reason"), "the executor actor failed: unspecified launch failure");
  EXPECT_EQ(told("status/").back(), "gate down");
  EXPECT_EQ(json::parse(publisher_.messages.back().body).at("data").at("reason"),
            "cpu is lost: the executor actor failed: unspecified launch failure");
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->complete);
  EXPECT_THAT(
      report->failures,
      ElementsAre("no device is left: cpu is lost: the executor actor failed: unspecified launch failure"));
  EXPECT_THAT(outbox_->unacknowledged(10), IsEmpty()) << "what was found is told";
}

/// One device whose engine can be made again.
class RepairTest : public PipelineTest {
 protected:
  std::vector<DeviceSlot> devices() override {
    const auto owner = std::make_shared<int>();
    DeviceSlot one{"cpu", parts(encoder_, language_, nullptr, owner), {}};
    one.again = [this, first = std::weak_ptr<int>(owner)] {
      ++made_;
      EXPECT_TRUE(first.expired()) << "there may be no room for two";
      if (broken_ > 0 && broken_-- > 0) throw std::runtime_error("no weights");
      again_ = std::make_unique<ScriptedLanguage>();
      return parts(encoder_, *again_);
    };
    return {std::move(one)};
  }

  /// Fails in a way that no pass survives.
  void fail() {
    language_.passes.on_ask = [](std::size_t) { throw 7; };
  }

  std::unique_ptr<ScriptedLanguage> again_;
  int made_ = 0;
  int broken_ = 0;
};

TEST_F(RepairTest, AnEngineThatFailsIsMadeAgainAndTheStreamsGoOn) {
  for (const char* name : {"gate", "yard"}) sources_.add(name, frames(std::vector<int>(400, 90)));
  start({live("gate"), live("yard")}, /*once=*/false);
  pass(6s);
  const double before = metric("vigil_windows_total{outcome=\"answered\"}");
  fail();
  pass(10s);
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(metric("vigil_device_failures_total{device=\"cpu\"}"), 1);
  EXPECT_EQ(metric("vigil_device_up{device=\"cpu\"}"), 1);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"answered\"}"), before + 6);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"device_lost\"}"), 1) << "what it was working on is counted";
  EXPECT_EQ(sources_.opened(), 2) << "no camera was connected again";
  EXPECT_THAT(told("status/north/gate/"), ElementsAre("gate connecting", "gate up", "gate down", "gate up"));
  EXPECT_THAT(told("alert/north/gate/"), Not(Contains("gate/person end"))) << "its episode goes on";
  EXPECT_FALSE(outcome().has_value());
}

TEST_F(RepairTest, EveryFrameIsSeenOrCountedWhileTheEngineIsAway) {
  for (const char* name : {"gate", "yard"}) sources_.add(name, frames(std::vector<int>(120, 90)));
  start({live("gate"), live("yard")});
  pass(6s);
  broken_ = 2;
  fail();
  pass(60s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
  double dropped = 0;
  for (const char* name : {"gate", "yard"})
    for (const char* reason : {"no_credit", "device_down", "device_lost", "late"})
      dropped += metric(std::string("vigil_frames_dropped_total{camera=\"") + name + "\",reason=\"" + reason +
                        "\"}");
  EXPECT_GT(dropped, 0);
  EXPECT_EQ(dropped + static_cast<double>(encoder_.frames), 240);
}

TEST_F(RepairTest, WhatFailsAgainAndAgainIsLost) {
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  start({live("gate")}, /*once=*/false);
  pass(3s);
  broken_ = 10;
  fail();
  pass(5s);
  EXPECT_EQ(metric("vigil_device_state{device=\"cpu\",state=\"restarting\"}"), 1);
  EXPECT_FALSE(board_.ready());
  EXPECT_TRUE(board_.live());
  pass(15s);
  EXPECT_EQ(made_, 3);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_THAT(report->failures, ElementsAre("no device is left: cpu is lost: no weights"));
}

TEST_F(RepairTest, AnEndThatWasLostWithTheEngineComesOutOfTheNext) {
  sources_.add("gate", frames(std::vector<int>(18, 90)));
  // The last window is due when the file has ended.
  language_.passes.on_ask = [this](std::size_t) {
    if (language_.passes.asked.size() == 5) throw 7;
  };
  start({camera("gate", config::Pace::fast, "gate")});
  pass(5s);
  EXPECT_EQ(made_, 1);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
  EXPECT_EQ(told("alert/").back(), "gate/person end");
}

TEST_F(RepairTest, StoppingWhileTheEngineIsAwayEndsTheRun) {
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  start({live("gate")}, /*once=*/false);
  pass(3s);
  broken_ = 2;
  fail();
  pass(3s);
  EXPECT_EQ(metric("vigil_device_state{device=\"cpu\",state=\"restarting\"}"), 1);
  caf::anon_send(supervisor_, stop_atom_v);
  pass(11s);
  EXPECT_TRUE(outcome().has_value());
}

// --- Two devices ------------------------------------------------------------------------------------------

class TwoDevicesTest : public PipelineTest {
 protected:
  std::vector<DeviceSlot> devices() override {
    return {slot(encoder_, language_, "cuda:0"), slot(other_encoder_, other_language_, "cuda:1")};
  }

  void start_cameras(const std::vector<std::string>& names, bool explain = false) {
    std::vector<CameraPtr> cameras;
    for (const std::string& name : names) {
      sources_.add(name, frames(std::vector<int>(400, 90)));
      auto settings = live(name);
      settings->rules[0].explain = explain;
      cameras.push_back(settings);
    }
    start(cameras, /*once=*/false);
  }

  FakeEncoder other_encoder_;
  ScriptedLanguage other_language_;
};

TEST_F(TwoDevicesTest, CamerasAreSpreadAndExplainedWhereTheyAreWatched) {
  start_cameras({"a", "b", "c", "d"}, /*explain=*/true);
  pass(10s);
  EXPECT_EQ(encoder_.frames, other_encoder_.frames);
  EXPECT_GT(language_.passes.generated.size(), 0U);
  EXPECT_EQ(language_.passes.generated, other_language_.passes.generated);
  for (const char* device : {"cuda:0", "cuda:1"})
    EXPECT_THAT(metrics_.text(),
                HasSubstr(std::string("vigil_mailbox_depth{actor=\"vision\",device=\"") + device));
}

TEST_F(TwoDevicesTest, TheCamerasOfALostDeviceMove) {
  start_cameras({"a", "b", "c", "d"});
  pass(6s);
  const auto lost = metric("vigil_windows_total{outcome=\"answered\"}");
  encoder_.on_encode = [] { throw run::DeviceLost("an illegal memory access was encountered"); };
  pass(10s);
  EXPECT_EQ(metric("vigil_device_state{device=\"cuda:0\",state=\"lost\"}"), 1);
  EXPECT_EQ(metric("vigil_device_up{device=\"cuda:1\"}"), 1);
  EXPECT_TRUE(board_.ready()) << "the other device takes frames";
  EXPECT_GE(metric("vigil_windows_total{outcome=\"answered\"}"), lost + 4 * 4);
  EXPECT_EQ(sources_.opened(), 4) << "no camera was connected again";
  for (const char* name : {"a", "c"}) {
    const std::string camera = name;
    EXPECT_THAT(told("status/north/" + camera + "/"),
                ElementsAre(camera + " connecting", camera + " up", camera + " down", camera + " up"));
    EXPECT_EQ(metric("vigil_camera_up{camera=\"" + camera + "\"}"), 1);
    EXPECT_THAT(told("alert/north/" + camera + "/"), Not(Contains(camera + "/person end")));
  }
  EXPECT_THAT(told("status/north/b/"), ElementsAre("b connecting", "b up"));
  EXPECT_FALSE(outcome().has_value());
}

// Lost in a pass of the language model: all that the camera had sent was encoded, so it hears of nothing
// lost.
TEST_F(TwoDevicesTest, AStreamThatMovesBeginsWithAWholePictureThoughNoPatchWasUnderWay) {
  std::deque<Event> still = frames(std::vector<int>(400, 90));
  for (Event& event : still) event.size = {56, 28};
  std::vector<CameraPtr> cameras;
  for (const char* name : {"a", "b"}) {
    sources_.add(name, still);
    auto settings = live(name);
    settings->stream.pruning.policy = config::Pruning::reference;
    settings->stream.window.length = 60s;
    cameras.push_back(settings);
  }
  start(cameras, /*once=*/false);
  pass(6s);
  ASSERT_THAT(other_encoder_.cameras, Each("b"));
  ASSERT_EQ(encoder_.groups.back(), base::GridMask::none(1, 2)) << "nothing changes";
  language_.passes.on_ask = [](std::size_t) { throw run::DeviceLost("unspecified launch failure"); };
  pass(10s);
  EXPECT_EQ(metric("vigil_frames_dropped_total{camera=\"a\",reason=\"device_lost\"}"), 0);
  std::vector<std::optional<base::GridMask>> moved;
  for (std::size_t i = 0; i < other_encoder_.cameras.size(); ++i)
    if (other_encoder_.cameras[i] == "a") moved.push_back(other_encoder_.groups[i]);
  ASSERT_GT(moved.size(), 2U);
  EXPECT_EQ(moved.front(), std::nullopt) << "all of it";
  EXPECT_EQ(moved.back(), base::GridMask::none(1, 2));
}

TEST_F(TwoDevicesTest, WindowsThatAreLostWithTheirDeviceAreCounted) {
  start_cameras({"a", "b", "c", "d"});
  pass(6s);
  const std::size_t before = language_.passes.asked.size();
  language_.passes.on_ask = [](std::size_t) { throw run::DeviceLost("unspecified launch failure"); };
  pass(10s);
  EXPECT_EQ(metric("vigil_device_state{device=\"cuda:0\",state=\"lost\"}"), 1);
  EXPECT_GE(metric("vigil_windows_total{outcome=\"device_lost\"}"), 1);
  EXPECT_EQ(language_.passes.asked.size(), before + 1) << "nothing is tried again on what is lost";
  EXPECT_EQ(metric("vigil_camera_up{camera=\"a\"}"), 1);
  EXPECT_FALSE(outcome().has_value());
}

TEST_F(TwoDevicesTest, AnAlertWhoseTextIsLostWithTheDeviceIsTold) {
  language_.passes.on_generate = [](std::size_t) { throw run::DeviceLost("unspecified launch failure"); };
  start_cameras({"a", "b"}, /*explain=*/true);
  pass(6s);
  EXPECT_EQ(metric("vigil_device_state{device=\"cuda:0\",state=\"lost\"}"), 1);
  pass(12s);
  EXPECT_THAT(told("alert/north/a/"), Contains("a/person new"));
  EXPECT_THAT(told("alert/north/b/"), Contains("b/person new"));
}

TEST_F(TwoDevicesTest, ACameraThatComesLaterIsWatchedOnWhatIsLeft) {
  start_cameras({"a", "b"});
  pass(4s);
  encoder_.on_encode = [] { throw run::DeviceLost("unspecified launch failure"); };
  pass(4s);
  const std::size_t before = encoder_.batches.size();
  sources_.add("c", frames(std::vector<int>(400, 90)));
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{live("c")}});
  pass(6s);
  EXPECT_EQ(told("status/north/c/").back(), "c up");
  EXPECT_THAT(told("alert/north/c/"), Contains("c/person new"));
  EXPECT_EQ(told("status/north/a/").back(), "a down") << "it was removed";
  EXPECT_EQ(encoder_.batches.size(), before) << "nothing goes to the lost one";
}

TEST_F(TwoDevicesTest, WhenBothAreLostTheRunEnds) {
  start_cameras({"a", "b"});
  pass(4s);
  for (FakeEncoder* each : {&encoder_, &other_encoder_})
    each->on_encode = [] { throw run::DeviceLost("uncorrectable ECC error encountered"); };
  pass(4s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_FALSE(report->complete);
  ASSERT_EQ(report->failures.size(), 1U);
  EXPECT_THAT(report->failures[0], HasSubstr("no device is left"));
}

TEST_F(TwoDevicesTest, AMovedCameraDrains) {
  start_cameras({"a", "b"});
  pass(4s);
  encoder_.on_encode = [] { throw run::DeviceLost("unspecified launch failure"); };
  pass(4s);
  caf::anon_send(supervisor_, stop_atom_v);
  pass(1s);
  const auto report = outcome();
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->complete);
  EXPECT_EQ(told("alert/north/a/").back(), "a/person end");
}

}  // namespace
}  // namespace vigil::actors
