// A camera under a test's hands: its sources, its clock, and what it sends and tells.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "actors/camera/camera.h"
#include "tests/actors/fakes.h"

namespace vigil::actors::testing {

/// What a camera told.
struct Heard final : CameraListener {
  void on_state(CameraState state, const std::string& reason) override {
    states.push_back(std::string(name_of(state)) + (reason.empty() ? "" : ": " + reason));
  }
  void on_frame() override { ++frames; }
  void on_dropped(std::uint64_t count, const char* reason) override { dropped[reason] += count; }
  void on_reconnect() override { ++reconnects; }
  void on_damaged_packets(std::uint64_t packets) override { damaged += packets; }

  std::vector<std::string> states;
  int frames = 0;
  std::map<std::string, std::uint64_t> dropped;
  int reconnects = 0;
  std::uint64_t damaged = 0;
};

/// A camera, its scripted sources and its clock.
class CameraTest : public ::testing::Test {
 protected:
  using Next = CameraStep::Next;

  Camera make(std::shared_ptr<OwnCamera> settings, bool once = false) {
    settings_ = std::move(settings);
    // Pictures of 4 x 2 pixels have two groups.
    return Camera({settings_, watched(*settings_), {2, {}, {2, 1}}, once, 0, 7}, sources_.factory(), clock_,
                  pulse_, recorder_);
  }
  static std::shared_ptr<OwnCamera> pruned(config::Pace pace = config::Pace::fast) {
    auto settings = camera("gate", pace);
    settings->stream.pruning.policy = config::Pruning::reference;
    settings->stream.window.length = 100s;
    return settings;
  }
  /// Of each patch.
  std::vector<std::int64_t> kept() const {
    std::vector<std::int64_t> result;
    for (const FramePatchPtr& patch : patches_)
      result.push_back(patch->encoded ? patch->encoded->count() : 2);
    return result;
  }

  /// Steps until the camera waits, needs credit or has finished, or until it sent `most` patches.
  CameraStep run(Camera& camera, std::size_t most = 100) {
    for (int i = 0; i < 1000; ++i) {
      CameraStep step = camera.step();
      if (step.patch) patches_.push_back(step.patch);
      if (step.next != Next::again || patches_.size() >= most) return step;
    }
    ADD_FAILURE() << "the camera does not come to rest";
    return {};
  }

  /// As `run`, and lets the time pass that the camera waits for, for `span` at most.
  void play(Camera& camera, base::Duration span) {
    const auto until = clock_.now() + span;
    for (;;) {
      const CameraStep step = run(camera);
      if ((step.next != Next::wait && step.next != Next::rest) || step.until > until) return;
      clock_.advance(std::chrono::ceil<base::Duration>(step.until - clock_.now()));
    }
  }

  std::vector<double> times() const {
    std::vector<double> result;
    for (const FramePatchPtr& patch : patches_) result.push_back(patch->seconds);
    return result;
  }

  const std::string url_ = "/clips/gate.mp4";
  ManualClock clock_;
  FakeSources sources_;
  Pulse pulse_;
  Heard recorder_;
  std::shared_ptr<OwnCamera> settings_;
  std::vector<FramePatchPtr> patches_;
};

/// A source that does what it is told at each call of `next`; its packets are told as a real one's are.
class LiveReader final : public media::VideoReader {
 public:
  using Next = std::function<std::optional<media::SampledFrame>(LiveReader&)>;
  LiveReader(media::ReadOptions options, Next next) : options_(std::move(options)), next_(std::move(next)) {}

  const media::SourceInfo& info() const override { return info_; }
  const media::ReadStats& stats() const override { return stats_; }
  const std::vector<media::FrameMotion>& rest() const override { return rest_; }
  std::optional<media::SampledFrame> next() override { return next_(*this); }

  void packet() const { options_.on_packet({1000, false}); }
  static media::SampledFrame frame(double seconds, media::Size size = {4, 2}) {
    media::SampledFrame frame;
    frame.image = image(1, size);
    frame.seconds = seconds;
    return frame;
  }

  media::SourceInfo info_;
  media::ReadStats stats_;

 private:
  media::ReadOptions options_;
  Next next_;
  std::vector<media::FrameMotion> rest_;
};

/// A camera whose sources do what a test says.
class LiveCameraTest : public CameraTest {
 protected:
  static constexpr const char* kUrl = "rtsp://viewer:hunter2@10.0.0.1/live?token=abc";
  FrameShape shape_{2, {}};

  Camera live(const ReaderFactory& open) {
    settings_ = camera("gate", config::Pace::realtime, kUrl);
    settings_->stream.stall_after = 5s;
    settings_->stream.reconnect = {1s, 32s};
    return Camera({settings_, watched(*settings_), shape_, false, 0, 7}, open, clock_, pulse_, recorder_);
  }
  Camera live(LiveReader::Next next, double duration = 0) {
    return live([next = std::move(next), duration](const std::string&, const media::ReadOptions& options) {
      auto reader = std::make_unique<LiveReader>(options, next);
      reader->info_.duration_seconds = duration;
      return reader;
    });
  }
};

}  // namespace vigil::actors::testing
