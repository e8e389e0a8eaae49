// Many cameras that cannot be reached, beside one that can: what they cost, and what is told of them.
#include <algorithm>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/pipeline.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Servers that answer as they are told, at once or never.
class ScriptedReach final : public media::Reach {
 public:
  struct Script {
    /// What is said of a URL; nothing: it stays silent.
    std::function<std::optional<std::string>(const std::string& url)> failure = [](const std::string& url) {
      return url + ": Connection refused";
    };
    bool no_descriptor = false;
    std::set<std::uint64_t> asking;
    std::size_t asked = 0;
    std::size_t most = 0;
    bool gone = false;
  };

  ScriptedReach(Told told, Script& script) : told_(std::move(told)), script_(script) {}
  ~ScriptedReach() override { script_.gone = true; }
  ScriptedReach(const ScriptedReach&) = delete;
  ScriptedReach& operator=(const ScriptedReach&) = delete;

  void ask(std::uint64_t ticket, const std::string& url, const std::string&) override {
    script_.asking.insert(ticket);
    ++script_.asked;
    script_.most = std::max(script_.most, script_.asking.size());
    const auto failure = script_.failure(url);
    if (!failure) return;
    script_.asking.erase(ticket);
    told_({ticket, *failure, script_.no_descriptor});
  }
  void forget(std::uint64_t ticket) override { script_.asking.erase(ticket); }

 private:
  Told told_;
  Script& script_;
};

/// Plays in time, as a camera does.
class PacedReader final : public media::VideoReader {
 public:
  explicit PacedReader(std::unique_ptr<media::VideoReader> reader) : reader_(std::move(reader)) {
    info_.duration_seconds = 1000;
  }
  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return reader_->stats(); }
  const std::vector<media::FrameMotion>& rest() const override { return reader_->rest(); }
  std::optional<media::SampledFrame> next() override { return reader_->next(); }

 private:
  std::unique_ptr<media::VideoReader> reader_;
  media::SourceInfo info_;
};

class UnreachableTest : public PipelineTest {
 protected:
  UnreachableTest() {
    reach_ = [this](media::Reach::Told told) {
      return std::make_unique<ScriptedReach>(std::move(told), script_);
    };
  }

  static std::string url(int i) {
    return "rtsp://10.0." + std::to_string(i / 250) + '.' + std::to_string(i % 250) + "/live";
  }
  static std::shared_ptr<OwnCamera> lost(int i) {
    auto settings = camera("lost-" + std::to_string(i), config::Pace::realtime, url(i));
    settings->stream.reconnect = {1s, 4s};
    return settings;
  }
  static std::vector<CameraPtr> lost_ones(int count) {
    std::vector<CameraPtr> cameras;
    for (int i = 0; i < count; ++i) cameras.push_back(lost(i));
    return cameras;
  }

  void start(std::vector<CameraPtr> cameras, const ReaderFactory& open) {
    PipelineTest::start(std::move(cameras), /*once=*/false,
                        [open](const std::string& of, const media::ReadOptions& options) {
                          return std::make_unique<PacedReader>(open(of, options));
                        });
  }
  void start(std::vector<CameraPtr> cameras) { start(std::move(cameras), sources_.factory()); }

  void stop_and_expect_a_complete_end() {
    caf::anon_send(supervisor_, stop_atom_v);
    pass(1s);
    ASSERT_TRUE(outcome().has_value());
    EXPECT_TRUE(outcome()->complete);
    EXPECT_TRUE(script_.gone);
  }

  ScriptedReach::Script script_;
};

TEST_F(UnreachableTest, TakeNoThreadAfterTheirFirstAttemptAndAreToldOnce) {
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(400, 10)));
  std::vector<CameraPtr> cameras = lost_ones(300);
  cameras.push_back(camera("gate", config::Pace::realtime));
  start(std::move(cameras));
  const int opened = sources_.opened();
  EXPECT_LE(opened, 1 + 300);
  pass(30s);
  EXPECT_EQ(sources_.opened(), opened) << "asking showed that no attempt was worth a thread";
  EXPECT_GT(script_.asked, 300U * 5);
  EXPECT_EQ(metric("vigil_camera_up{camera=\"gate\"}"), 1);
  for (int i = 0; i < 300; ++i) {
    const std::string name = "lost-" + std::to_string(i);
    ASSERT_THAT(told("status/north/" + name + "/"), Contains(name + " down").Times(1));
    EXPECT_GE(metric("vigil_camera_reconnects_total{camera=\"" + name + "\"}"), 5);
    EXPECT_EQ(metric("vigil_camera_state{camera=\"" + name + "\",state=\"down\"}"), 1);
  }
  // One of them comes back.
  sources_.add(url(7), frames(std::vector<int>(400, 10)));
  script_.failure = [](const std::string& of) {
    return of == url(7) ? std::string() : of + ": Connection refused";
  };
  pass(5s);
  EXPECT_THAT(told("status/north/lost-7/"), Contains("lost-7 up"));
  EXPECT_EQ(sources_.opened(), opened + 1);
  stop_and_expect_a_complete_end();
}

TEST_F(UnreachableTest, ThatStaySilentHoldUpNoHealthyOneThatComesLater) {
  script_.failure = [](const std::string& of) {
    return of == url(999) ? std::optional(std::string()) : std::nullopt;
  };
  dial_.unasked = 0;
  dial_.questions = 50;
  start(lost_ones(200));
  EXPECT_EQ(script_.asking.size(), 50U);
  EXPECT_EQ(sources_.opened(), 0);
  EXPECT_EQ(metric("vigil_camera_state{camera=\"lost-199\",state=\"connecting\"}"), 1)
      << "it is known before its turn";
  // A file does not queue behind them.
  sources_.add("/clips/gate.mp4", frames(std::vector<int>(400, 10)));
  auto cameras = lost_ones(200);
  cameras.push_back(camera("gate", config::Pace::realtime));
  caf::anon_send(supervisor_, reload_atom_v, CameraList{cameras});
  pass(2s);
  EXPECT_THAT(told("status/"), Contains("gate up"));
  // Those that are gone are asked no more.
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{cameras[0], cameras[1], cameras.back()}});
  pass(1s);
  EXPECT_THAT(script_.asking, SizeIs(2));
  EXPECT_EQ(script_.most, 50U);
  EXPECT_THAT(metrics_.text(), Not(HasSubstr("lost-199")));
  stop_and_expect_a_complete_end();
}

TEST_F(UnreachableTest, WhoWaitsForASupervisorThatFailsIsTold) {
  sources_.add("gate", frames(std::vector<int>(400, 90)));
  const CameraPtr gate = camera("gate", config::Pace::realtime, "gate");
  start({gate});
  EXPECT_FALSE(outcome().has_value());
  script_.failure = [](const std::string&) -> std::optional<std::string> {
    throw std::runtime_error("no thread is left");
  };
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{gate, lost(1)}});
  pass(1s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_FALSE(outcome()->complete);
  EXPECT_THAT(outcome()->failures, ElementsAre("the supervisor failed: no thread is left"));
  EXPECT_EQ(times_logged("the supervisor failed"), 1);
  EXPECT_EQ(system_.registry().running(), 1U) << "all but who waits have ended";
}

TEST_F(UnreachableTest, AreLoggedUpToABoundAndThenCounted) {
  logger_.set_level(spdlog::level::warn);
  start(lost_ones(1000));
  pass(59s);
  EXPECT_EQ(times_logged(": down: "), 100);
  EXPECT_EQ(told("status/").size(), 1000U + 64U) << "those that had a thread said that they connect";
  pass(2s);
  EXPECT_EQ(times_logged("cameras: 900 more lines in the last minute are left out"), 1);
}

TEST_F(UnreachableTest, EndAtOnceWhateverTheyDo) {
  script_.failure = [](const std::string&) { return std::nullopt; };
  start(lost_ones(500));
  stop_and_expect_a_complete_end();
}

TEST_F(UnreachableTest, BesideAFileThatWasPlayedLetTheRunEndWhenTheyAreRemoved) {
  sources_.add("/clips/gate.mp4", frames({10, 10, 10, 10}));
  dial_.unasked = 0;
  start({camera(), lost(1)});
  pass(5s);
  EXPECT_FALSE(outcome().has_value());
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{camera()}});
  pass(1s);
  ASSERT_TRUE(outcome().has_value());
  EXPECT_TRUE(outcome()->complete);
}

TEST_F(UnreachableTest, AReloadOfTheirRulesTouchesNothingElse) {
  dial_.unasked = 0;
  start({lost(1)});
  pass(1s);
  auto changed = lost(1);
  changed->rules[0].threshold = 0.9;
  sources_.add(url(1), frames(std::vector<int>(60, 80)));
  script_.failure = [](const std::string&) { return std::string(); };
  caf::anon_send(supervisor_, reload_atom_v, CameraList{{changed}});
  pass(20s);
  EXPECT_THAT(told("status/"), Contains("lost-1 up").Times(1));
  EXPECT_THAT(told("alert/"), IsEmpty()) << "with the new rule, 80 % is no alert";
}

/// No source can be opened while descriptors are gone.
class ExhaustedTest : public UnreachableTest {
 protected:
  ReaderFactory open() {
    return [this, inner = sources_.factory()](const std::string& of, const media::ReadOptions& options) {
      ++attempts_;
      if (exhausted_)
        throw media::Error(of + ": no file descriptor is left", media::Error::Kind::no_descriptor);
      return inner(of, options);
    };
  }
  int attempts_ = 0;
  bool exhausted_ = true;
};

TEST_F(ExhaustedTest, CamerasAreTriedByOneAndComeBackTogether) {
  script_.failure = [this](const std::string&) {
    return std::string(exhausted_ ? "Too many open files" : "");
  };
  script_.no_descriptor = true;
  std::vector<CameraPtr> cameras;
  for (int i = 0; i < 100; ++i) {
    auto settings = lost(i);
    settings->stream.reconnect = {30s, 60s};
    sources_.add(url(i), frames(std::vector<int>(400, 10)));
    cameras.push_back(settings);
  }
  start(cameras, open());
  const int first = attempts_;
  EXPECT_LE(first, 100);
  pass(20s);
  EXPECT_LE(attempts_ - first, 21) << "one a second";
  EXPECT_EQ(times_logged("no file descriptor is left: cameras that are down wait"), 1);
  EXPECT_EQ(times_logged("there are file descriptors again"), 0);
  exhausted_ = false;
  script_.no_descriptor = false;
  pass(2500ms);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(metric("vigil_camera_up{camera=\"lost-" + std::to_string(i) + "\"}"), 1)
        << "whatever the waits between attempts";
  EXPECT_EQ(times_logged("there are file descriptors again"), 1);
  stop_and_expect_a_complete_end();
}

TEST_F(UnreachableTest, BeyondTheDescriptorsForCamerasOthersWaitAndSayWhy) {
  dial_.descriptors = 3;
  dial_.unasked = 64;
  for (int i = 0; i < 5; ++i) sources_.add(url(i), frames(std::vector<int>(i == 0 ? 8 : 400, 10)));
  start(lost_ones(5));
  pass(1s);
  EXPECT_EQ(metric("vigil_camera_up{camera=\"lost-2\"}"), 1);
  EXPECT_EQ(metric("vigil_camera_up{camera=\"lost-3\"}"), 0);
  EXPECT_EQ(times_logged("camera lost-3: down: all 3 file descriptors for cameras are in use"), 1);
  // When one is lost, the next gets its place.
  pass(10s);
  const double others =
      metric("vigil_camera_up{camera=\"lost-3\"}") + metric("vigil_camera_up{camera=\"lost-4\"}");
  EXPECT_EQ(others, 1);
  EXPECT_EQ(times_logged("all 3 file descriptors"), 2 + 1)
      << "of two at first, and of the one that lost its place";
}

// A camera that is due soon, again and again, beside one that is due late.
TEST_F(UnreachableTest, TimersDoNotAddUp) {
  std::vector<std::shared_ptr<OwnCamera>> two = {lost(0), lost(1)};
  two[0]->stream.reconnect = {1s, 1s};
  two[1]->stream.reconnect = {60s, 60s};
  start({two[0], two[1]});
  pass(10s);
  const std::size_t pending = scheduler().clock().schedule().size();
  pass(90s);
  EXPECT_LE(scheduler().clock().schedule().size(), pending + 2);
  EXPECT_GT(script_.asked, 80U);
}

}  // namespace
}  // namespace vigil::actors
