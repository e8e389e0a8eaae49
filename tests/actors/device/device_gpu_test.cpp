// The demo model on a real GPU that runs out of memory, and one that is lost: on real threads.
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>

#include <caf/all.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>

#include "actors/messages/types.h"
#include "actors/supervisor/supervisor_actor.h"
#include "bench/metric_sum.h"
#include "cluster/process/clock.h"
#include "cluster/process/system.h"
#include "engine/engine.h"
#include "kernels/device/stream.h"
#include "tests/actors/fakes.h"
#include "tests/actors/gpu_faults.h"
#include "tests/engine/made_up_model.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::HasSubstr;

constexpr media::Size kSmall{112, 84};
constexpr media::Size kLarge{1120, 840};

class GpuPipeline : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kernels::cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  }

  static EngineParts engine(run::Device device) {
    return parts_of(engine::make_engine(std::string(VIGIL_SOURCE_DIR) + "/models/demo",
                                        {.device = device, .compute = {}}));
  }

  /// A file that never ends and is played as fast as it is answered.
  CameraPtr endless(const std::string& name, media::Size size) {
    std::deque<Event> script;
    for (int i = 0; i < 200'000; ++i) script.push_back({i / 2.0, 90, "", size});
    sources_.add(name, std::move(script));
    return camera(name, config::Pace::fast, name);
  }

  void start(std::vector<DeviceSlot> devices, std::vector<CameraPtr> cameras) {
    supervisor_ = system_.spawn(
        supervisor, PipelineDeps{.cameras = std::move(cameras),
                                 .grace = 20s,
                                 .model_id = "demo",
                                 .open = sources_.factory(),
                                 .shape = {2, [](media::Size source) { return source; }},
                                 .devices = std::move(devices),
                                 .outbox = *outbox_,
                                 .publisher = publisher_,
                                 .metrics = metrics_,
                                 .board = board_,
                                 .clock = clock_,
                                 .logger = logger_,
                                 .seed = 1,
                                 .observer = {.window =
                                                  [this](const WindowAnswers& window, const WorkSpan&) {
                                                    const std::lock_guard lock(mutex_);
                                                    ++answered_[window.watch->name];
                                                    changed_.notify_all();
                                                  },
                                              .piece = {}}});
  }

  /// Whether so many more windows of a camera are answered soon.
  bool answers(const std::string& name, int more) {
    std::unique_lock lock(mutex_);
    const int until = answered_[name] + more;
    return changed_.wait_for(lock, 60s, [&] { return answered_[name] >= until; });
  }

  DrainReport stop() {
    caf::anon_send(supervisor_, stop_atom_v);
    DrainReport report;
    caf::scoped_actor self{system_};
    self->request(supervisor_, caf::infinite, wait_atom_v)
        .receive([&](const DrainReport& outcome) { report = outcome; },
                 [&](const caf::error& error) { ADD_FAILURE() << system_.render(error); });
    return report;
  }

  double count(const std::string& metric, const std::string& label, const std::string& value) const {
    return bench::metric_by(metrics_.text(), metric, label)[value];
  }

  struct Config : cluster::SystemConfig {
    Config() { know_messages(*this); }
  };

  cluster::SystemClock clock_;
  FakeSources sources_;
  FakePublisher publisher_;
  Metrics metrics_;
  StatusBoard board_{clock_};
  std::unique_ptr<Outbox> outbox_ = make_memory_outbox();
  std::ostringstream log_;
  spdlog::logger logger_{"test", std::make_shared<spdlog::sinks::ostream_sink_mt>(log_)};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, int> answered_;
  Config config_;
  caf::actor_system system_{config_};
  supervisor_actor supervisor_;
};

TEST_F(GpuPipeline, WhatHasNoRoomIsCountedAndThePipelineGoesOn) {
  const CameraPtr small = endless("small", kSmall);
  const CameraPtr large = endless("large", kLarge);
  start({{"cuda:0", engine({kernels::DeviceKind::cuda, {0}}), {}}}, {small});
  ASSERT_TRUE(answers("small", 5));
  {
    const MemoryHog hog;
    caf::anon_send(supervisor_, reload_atom_v, CameraList{{small, large}});
    ASSERT_TRUE(answers("small", 20)) << log_.str();
    for (int i = 0; i < 100 && count("vigil_frames_dropped_total", "reason", "out_of_memory") == 0; ++i)
      ASSERT_TRUE(answers("small", 5)) << log_.str();
    EXPECT_GT(count("vigil_frames_dropped_total", "reason", "out_of_memory"), 0) << log_.str();
  }
  EXPECT_TRUE(answers("large", 2)) << "once there is room: " << log_.str();
  EXPECT_EQ(count("vigil_device_up", "device", "cuda:0"), 1);
  EXPECT_TRUE(stop().complete);
  EXPECT_THAT(log_.str(), HasSubstr("has no room for"));
}

// Whoever loses a GPU has a process to itself, as ctest gives it: the GPU cannot be used there any more.
TEST_F(GpuPipeline, ZTheCamerasOfALostGpuMoveToTheProcessor) {
  const CameraPtr first = endless("first", kSmall);
  const CameraPtr second = endless("second", kSmall);
  start({{"cpu", engine({}), {}}, {"cuda:0", engine({kernels::DeviceKind::cuda, {0}}), {}}}, {first, second});
  ASSERT_TRUE(answers("first", 3) && answers("second", 3));
  EXPECT_EQ(count("vigil_device_up", "device", "cuda:0"), 1);
  trap_on_gpu(0);
  EXPECT_TRUE(answers("first", 20) && answers("second", 20)) << log_.str();
  EXPECT_EQ(count("vigil_device_up", "device", "cuda:0"), 0) << log_.str();
  EXPECT_EQ(count("vigil_device_up", "device", "cpu"), 1);
  EXPECT_TRUE(board_.ready());
  EXPECT_THAT(log_.str(), HasSubstr("cuda:0: lost: the "));
  EXPECT_TRUE(stop().complete);
  std::cout << log_.str();
}

TEST_F(GpuPipeline, ZALostGpuOfTwoThatShareAModelIsALostDevice) {
  if (kernels::cuda_devices() < 2) GTEST_SKIP() << "skipped, 2 GPUs are wanted";
  const auto shared = [](run::Device device) {
    return parts_of(engine::make_engine(stream::testing::made_up_model(), {.device = device, .compute = {}}));
  };
  const CameraPtr first = endless("first", kSmall);
  const CameraPtr second = endless("second", kSmall);
  start({{"cpu", shared({}), {}}, {"cuda:0+1", shared({kernels::DeviceKind::cuda, {0, 1}}), {}}},
        {first, second});
  ASSERT_TRUE(answers("first", 3) && answers("second", 3));
  EXPECT_EQ(count("vigil_device_up", "device", "cuda:0+1"), 1);
  trap_on_gpu(1);
  EXPECT_TRUE(answers("first", 20) && answers("second", 20)) << log_.str();
  EXPECT_EQ(count("vigil_device_up", "device", "cuda:0+1"), 0) << log_.str();
  EXPECT_TRUE(board_.ready());
  EXPECT_THAT(log_.str(), HasSubstr("cuda:0+1: lost: the "));
  EXPECT_TRUE(stop().complete);
}

}  // namespace
}  // namespace vigil::actors
