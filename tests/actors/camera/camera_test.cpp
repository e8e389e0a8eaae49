#include "actors/camera/camera.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema/fields.h"
#include "tests/actors/fakes.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::StartsWith;
using Next = CameraStep::Next;

struct Recorder final : CameraListener {
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

class CameraTest : public ::testing::Test {
 protected:
  Camera make(std::shared_ptr<config::CameraSettings> settings, bool once = false) {
    settings_ = std::move(settings);
    // Pictures of 4 x 2 pixels have two groups.
    return Camera({settings_, watched(*settings_), {2, {}, {2, 1}}, once, 0, 7}, sources_.factory(), clock_,
                  pulse_, recorder_);
  }
  static std::shared_ptr<config::CameraSettings> pruned(config::Pace pace = config::Pace::fast) {
    auto settings = camera("gate", pace);
    settings->stream.pruning.policy = config::Pruning::reference;
    settings->stream.window.length = 100s;
    return settings;
  }
  /// Of each patch.
  std::vector<std::int64_t> kept() const {
    std::vector<std::int64_t> result;
    for (const FramePatchPtr& patch : patches_) result.push_back(patch->groups ? patch->groups->count() : 2);
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
  Recorder recorder_;
  std::shared_ptr<config::CameraSettings> settings_;
  std::vector<FramePatchPtr> patches_;
};

TEST_F(CameraTest, FoldsFramesIntoPatchesAndFinishesWithTheFile) {
  sources_.add(url_, frames({1, 2, 3, 4, 5}));
  Camera gate = make(camera());
  gate.grant(10);
  EXPECT_EQ(run(gate).next, Next::finished);
  ASSERT_EQ(patches_.size(), 3U);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2));
  EXPECT_EQ(patches_[0]->frames.size(), 2U);
  EXPECT_EQ(patches_[2]->frames.size(), 1U) << "what was begun goes out at the end";
  EXPECT_EQ(patches_[1]->duration, 1.0);
  EXPECT_EQ(patches_[1]->sequence, 1U);
  EXPECT_EQ(patches_[0]->watch, watched(*settings_)->ref());
  EXPECT_EQ(recorder_.frames, 5);
  EXPECT_THAT(recorder_.states, ElementsAre("connecting: /clips/gate.mp4", "up", "down: end of file"));
  EXPECT_EQ(gate.failure(), std::nullopt);
}

TEST_F(CameraTest, PlayedFastItWaitsForCreditAndDropsNothing) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6}));
  Camera gate = make(camera());
  EXPECT_EQ(run(gate).next, Next::credit);
  gate.grant(1);
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_EQ(patches_.size(), 1U);
  EXPECT_LE(recorder_.frames, 3) << "it does not read ahead of its credit";
  gate.grant(5);
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2));
  EXPECT_TRUE(recorder_.dropped.empty());
}

TEST_F(CameraTest, WhatIsAcknowledgedGivesItsCreditBackUnlessItWasLost) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6, 7, 8}));
  Camera gate = make(camera());
  gate.grant(2);
  EXPECT_EQ(run(gate).next, Next::credit);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(gate.sent().under_way(), 2U);
  gate.acknowledge(ack_of(*patches_[0], PatchOutcome::lost, "device_lost"));
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_EQ(patches_.size(), 2U) << "until a device has room";
  PatchAck before = ack_of(*patches_[1], PatchOutcome::encoded);
  before.generation = 9;
  gate.acknowledge(before);
  EXPECT_EQ(gate.sent().under_way(), 1U) << "another incarnation's";
  gate.acknowledge(ack_of(*patches_[1], PatchOutcome::encoded));
  EXPECT_EQ(run(gate).next, Next::credit);
  ASSERT_EQ(patches_.size(), 3U);
  gate.acknowledge(ack_of(*patches_[2], PatchOutcome::dropped, "encode_failed"));
  run(gate);
  EXPECT_EQ(patches_.size(), 4U);
  EXPECT_EQ(gate.sent().sent, 4U);
  EXPECT_EQ(gate.sent().encoded, 1U);
  EXPECT_EQ(gate.sent().dropped, 1U);
  EXPECT_EQ(gate.sent().lost, 1U);
}

TEST_F(CameraTest, SendsWhatItsPolicyKeeps) {
  sources_.add(url_, frames({1, 1, 1, 1, 90, 90, 90, 90, 90, 90}));
  Camera gate = make(pruned());
  gate.grant(4);
  EXPECT_EQ(run(gate).next, Next::credit);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0));
  gate.acknowledge(ack_of(*patches_[2], PatchOutcome::dropped, "encode_failed"));
  run(gate);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0, 2)) << "what was dropped comes with the next one";
}

TEST_F(CameraTest, WithoutAPolicyItSendsEverything) {
  sources_.add(url_, frames({1, 1, 1, 1}));
  Camera gate = make(camera());
  gate.grant(10);
  run(gate);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(patches_[1]->groups, std::nullopt);
}

TEST_F(CameraTest, AfterAStrideThatWasDroppedItSendsAWholePicture) {
  sources_.add(url_, frames(std::vector<int>(14, 1)));
  Camera gate = make(pruned(config::Pace::realtime));
  gate.grant(2);
  play(gate, 3s);
  EXPECT_THAT(kept(), ElementsAre(2, 0));
  EXPECT_GT(recorder_.dropped["no_credit"], 0U);
  gate.grant(10);
  play(gate, 10s);
  EXPECT_THAT(times(), ElementsAre(0, 1, 4, 5, 6));
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0, 0));
}

TEST_F(CameraTest, AnotherLengthOfWindowBringsAnchorsInItsTime) {
  sources_.add(url_, frames(std::vector<int>(24, 1)));
  Camera gate = make(pruned());
  gate.grant(4);
  run(gate);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 0, 0));
  settings_ = pruned();
  settings_->stream.window.length = 3s;
  gate.alter(settings_, watched(*settings_, 2));
  gate.grant(8);
  run(gate);
  const std::vector<std::int64_t> shares = kept();
  ASSERT_EQ(shares.size(), 12U);
  EXPECT_EQ(shares[4], 2);
  for (std::size_t i = 4; i + 3 <= shares.size(); ++i)
    EXPECT_EQ(std::max({shares[i], shares[i + 1], shares[i + 2]}), 2) << "no anchor from " << i;
}

TEST_F(CameraTest, PlayedFastItsWallTimeFollowsTheStream) {
  sources_.add(url_, frames({1, 2, 3, 4}));
  Camera gate = make(camera());
  gate.grant(10);
  run(gate);
  ASSERT_EQ(patches_.size(), 2U);
  EXPECT_EQ(patches_[1]->captured.wall - patches_[0]->captured.wall, 1s);
}

TEST_F(CameraTest, PacedByItsOwnTimestamps) {
  sources_.add(url_, frames({1, 2, 3, 4}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  const auto start = clock_.now();
  CameraStep step = run(gate);
  ASSERT_EQ(step.next, Next::wait) << "the frame at 0.5 s is not due yet";
  EXPECT_EQ(step.until - start, 500ms);
  EXPECT_EQ(run(gate).next, Next::wait) << "waking up early changes nothing";
  EXPECT_TRUE(patches_.empty());
  clock_.advance(500ms);
  step = run(gate);
  EXPECT_EQ(step.until - start, 1000ms);
  EXPECT_EQ(patches_.size(), 1U);
  EXPECT_EQ(patches_[0]->captured.steady - start, 500ms);
  clock_.advance(1200ms);
  run(gate);
  EXPECT_EQ(patches_[1]->captured.steady - start, 1500ms)
      << "when its last frame was due, not when it was heard";
}

TEST_F(CameraTest, AfterADelayAPacedFileCatchesUp) {
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  run(gate);
  clock_.advance(2000ms);
  run(gate);
  EXPECT_EQ(recorder_.frames, 5) << "the sixth is not due";
  EXPECT_THAT(times(), ElementsAre(0, 1));
}

TEST_F(CameraTest, WithoutCreditItDropsWholeStridesAndCountsThem) {
  // 2 s at 2 frames a second and 2 frames a patch: 2 patches a stride.
  sources_.add(url_, frames({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(3);
  play(gate, 3900ms);
  EXPECT_THAT(times(), ElementsAre(0, 1)) << "one credit does not make a stride";
  EXPECT_EQ(recorder_.dropped["no_credit"], 4U);
  gate.grant(1);
  play(gate, 10s);
  EXPECT_THAT(times(), ElementsAre(0, 1, 4, 5));
  EXPECT_EQ(recorder_.dropped["no_credit"], 4U);
}

TEST_F(CameraTest, LoopsWithoutABreakInTime) {
  for (int pass = 0; pass < 4; ++pass) sources_.add(url_, frames({1, 2, 3, 4}));
  auto settings = camera("gate", config::Pace::realtime);
  settings->stream.loop = true;
  Camera gate = make(settings);
  gate.grant(100);
  const auto start = clock_.now();
  play(gate, 5700ms);
  EXPECT_THAT(times(), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(patches_[5]->captured.steady - start, 5500ms) << "each pass is paced, too";
  EXPECT_THAT(recorder_.states, ElementsAre("connecting: /clips/gate.mp4", "up"));
  EXPECT_EQ(recorder_.reconnects, 0);
}

TEST_F(CameraTest, ReconnectsForEverWithGrowingWaits) {
  auto settings = camera("gate", config::Pace::realtime, "rtsp://10.0.0.1/live");
  settings->stream.reconnect = {1s, 8s};
  Camera gate = make(settings);
  std::vector<base::Duration> waits;
  for (int attempt = 0; attempt < 50; ++attempt) {
    const CameraStep step = run(gate);
    ASSERT_EQ(step.next, Next::rest) << "no thread is needed meanwhile";
    waits.push_back(std::chrono::ceil<base::Duration>(step.until - clock_.now()));
    clock_.advance(waits.back());
  }
  EXPECT_GE(waits[0], 500ms);
  EXPECT_LE(waits[0], 1s);
  EXPECT_GE(waits[1], 1s);
  EXPECT_LE(waits[1], 2s);
  EXPECT_GE(waits[49], 4s);
  EXPECT_LE(waits[49], 8s);
  EXPECT_EQ(recorder_.reconnects, 50);
  sources_.add("rtsp://10.0.0.1/live", frames({1, 2}));
  run(gate);
  gate.grant(10);
  EXPECT_EQ(recorder_.states.back(), "down: the source ended");
  EXPECT_LE(run(gate).until - clock_.now(), 1s) << "after a success the waits are short again";
}

TEST_F(CameraTest, ALostSourceComesBackWithTheTimeThatPassed) {
  const std::string url = "rtsp://10.0.0.1/live";
  auto settings = camera("gate", config::Pace::realtime, url);
  settings->stream.reconnect = {2s, 2s};
  std::deque<Event> lost = frames({1, 2, 3});
  lost.push_back({0, 0, "Connection reset by peer", {}});
  sources_.add(url, lost);
  sources_.add(url, frames({4, 5, 6, 7}));
  Camera gate = make(settings);
  gate.grant(100);
  run(gate);
  EXPECT_THAT(times(), ElementsAre(0, 1)) << "what was begun when the source broke goes out";
  clock_.advance(60s);
  run(gate);
  EXPECT_THAT(times(), ElementsAre(0, 1, 60, 61));
  EXPECT_EQ(recorder_.reconnects, 2) << "and it ended once more";
}

TEST_F(CameraTest, ASuccessorGoesOnBehindTheLastFrame) {
  const std::string url = "rtsp://10.0.0.1/live";
  sources_.add(url, frames({1, 2, 3, 4}));
  sources_.add(url, frames({5, 6}));
  {
    Camera first = make(camera("gate", config::Pace::realtime, url));
    first.grant(100);
    run(first);
  }
  clock_.advance(10s);
  Camera second = make(camera("gate", config::Pace::realtime, url));
  second.grant(100);
  run(second);
  ASSERT_EQ(patches_.size(), 3U);
  EXPECT_GT(patches_[2]->seconds, 9.9);
}

TEST_F(CameraTest, OnceAMissingFileIsAFailureAndNoRetry) {
  Camera gate = make(camera(), /*once=*/true);
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_EQ(gate.failure(), "/clips/gate.mp4: Connection refused");
  EXPECT_EQ(recorder_.states.back(), "down: /clips/gate.mp4: Connection refused");
  EXPECT_EQ(gate.step().next, Next::finished);
}

TEST_F(CameraTest, ASourceWithoutAFrameIsNotLoopedInHaste) {
  sources_.add(url_, {});
  auto settings = camera();
  settings->stream.loop = true;
  Camera gate = make(settings);
  gate.grant(10);
  EXPECT_EQ(run(gate).next, Next::rest);
  EXPECT_EQ(recorder_.states.back(), "down: no frame in the whole source");
}

TEST_F(CameraTest, AChangeOfSizeBeginsAnotherPatch) {
  std::deque<Event> script = frames({1, 2, 3, 4, 5});
  script[3].size = script[4].size = {8, 4};
  sources_.add(url_, script);
  Camera gate = make(camera());
  gate.grant(2);
  EXPECT_EQ(run(gate).next, Next::credit);
  gate.grant(2);
  run(gate);
  EXPECT_THAT(times(), ElementsAre(0, 1, 1.5));
  for (const FramePatchPtr& patch : patches_) {
    for (const auto& frame : patch->frames) EXPECT_EQ(frame.image->size, patch->frames[0].image->size);
  }
  EXPECT_EQ(recorder_.frames, 5);
}

TEST_F(CameraTest, StoppedItDeliversWhatItBegan) {
  sources_.add(url_, frames({1, 2, 3, 4, 5}));
  Camera gate = make(camera("gate", config::Pace::realtime));
  gate.grant(10);
  play(gate, 1s);
  EXPECT_THAT(times(), ElementsAre(0));
  gate.stop();
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_THAT(times(), ElementsAre(0, 1));
  EXPECT_EQ(recorder_.states.back(), "down: stopped");
}

TEST_F(CameraTest, ItsPulseTellsThatItWaitsForTheSource) {
  std::optional<Pulse::TimePoint> within;
  settings_ = camera();
  Camera gate(
      {settings_, watched(*settings_), {2, {}}, true, 0, 7},
      [&](const std::string& url, const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
        within = pulse_.awaiting_since();
        throw media::Error(url + ": no");
      },
      clock_, pulse_, recorder_);
  run(gate);
  EXPECT_EQ(within, clock_.now());
  EXPECT_EQ(pulse_.awaiting_since(), std::nullopt);
}

TEST_F(CameraTest, ACancelledSourceIsNoLostOne) {
  settings_ = camera("gate", config::Pace::realtime, "rtsp://10.0.0.1/live");
  media::ReadOptions seen;
  Camera gate(
      {settings_, watched(*settings_), {2, {}}, false, 0, 7},
      [&](const std::string& url, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        seen = options;
        pulse_.cancel();
        throw media::Error(url + ": cancelled", media::Error::Kind::cancelled);
      },
      clock_, pulse_, recorder_);
  EXPECT_EQ(run(gate).next, Next::finished);
  EXPECT_TRUE(seen.stop.stop_requested());
  EXPECT_GT(seen.open_timeout, 0s);
  EXPECT_GT(seen.read_timeout, settings_->stream.stall_after)
      << "a stalled source is seen before it is given up";
  EXPECT_EQ(recorder_.states.back(), "down: stopped");
  EXPECT_EQ(recorder_.reconnects, 0);
}

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

TEST_F(LiveCameraTest, PacketsKeepItAliveThoughNoSampleIsDue) {
  std::vector<base::Duration> silences;
  const auto note = [&] {
    silences.push_back(std::chrono::ceil<base::Duration>(clock_.now() - pulse_.awaiting_since().value()));
  };
  Camera gate = live([&](LiveReader& reader) {
    // A sample in a minute; a packet every 4 s.
    for (int i = 0; i < 15; ++i) {
      clock_.advance(4s);
      note();
      reader.packet();
      note();
    }
    return LiveReader::frame(0);
  });
  gate.grant(10);
  gate.step();
  gate.step();
  EXPECT_EQ(recorder_.states.back(), "up");
  ASSERT_EQ(silences.size(), 30U);
  for (std::size_t i = 0; i < silences.size(); i += 2) {
    EXPECT_EQ(silences[i], 4s) << "never as long as a stall";
    EXPECT_EQ(silences[i + 1], 0s);
  }
  EXPECT_EQ(pulse_.awaiting_since(), std::nullopt);
}

TEST_F(LiveCameraTest, ItsSourceIsOpenedWithDeadlinesAndItsTransport) {
  media::ReadOptions seen;
  std::string opened;
  Camera gate = live(
      [&](const std::string& url, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        seen = options;
        opened = url;
        throw media::Error("no");
      });
  settings_->stream.transport = config::Transport::udp;
  run(gate);
  EXPECT_EQ(opened, kUrl);
  EXPECT_EQ(seen.transport, media::Transport::udp);
  EXPECT_GT(seen.open_timeout, 0s);
  EXPECT_EQ(seen.read_timeout, 15s);
  EXPECT_GT(seen.frame_timeout, 60s) << "smart codecs send a key frame a minute";
}

TEST_F(LiveCameraTest, ItsSourceHasTheBoundsOfTheConfiguration) {
  media::ReadOptions seen;
  Camera gate =
      live([&](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        seen = options;
        throw media::Error("no");
      });
  settings_->stream.tls = {"/etc/vigil/ca.pem", true};
  settings_->stream.playlists = true;
  settings_->stream.decoder_memory = config::mebibytes(7);
  settings_->inputs[0].url.shown = "rtsp://***@10.0.0.1/live?***";
  run(gate);
  EXPECT_EQ(seen.tls.ca_file, "/etc/vigil/ca.pem");
  EXPECT_TRUE(seen.tls.insecure);
  EXPECT_TRUE(seen.playlists);
  EXPECT_EQ(seen.decoder_memory, std::size_t{7} << 20);
  EXPECT_EQ(seen.shown_name, "rtsp://***@10.0.0.1/live?***");
}

TEST_F(LiveCameraTest, MotionAndResidualsAreReadForPoliciesThatLookAtThem) {
  using Wanted = std::pair<bool, bool>;
  for (const auto& [policy, weight, wanted] : {std::tuple{config::Pruning::none, 1.0, Wanted(false, false)},
                                               {config::Pruning::reference, 1.0, Wanted(false, false)},
                                               {config::Pruning::codecsight, 0.0, Wanted(true, false)},
                                               {config::Pruning::codecsight, 0.1, Wanted(true, true)}}) {
    settings_ = camera("gate", config::Pace::realtime, kUrl);
    settings_->stream.pruning.policy = policy;
    settings_->stream.pruning.residual_weight = weight;
    std::optional<Wanted> seen;
    Camera gate(
        {settings_, watched(*settings_), shape_, false, 0, 7},
        [&](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
          seen = {options.motion, options.residual};
          throw media::Error("no");
        },
        clock_, pulse_, recorder_);
    run(gate);
    EXPECT_EQ(seen, wanted) << config::name_of(policy);
  }
}

TEST_F(LiveCameraTest, AfterItWasLostItSendsAWholePicture) {
  int opened = 0;
  shape_.grid = {2, 1};
  const ReaderFactory open = [&](const std::string&, const media::ReadOptions& options) {
    ++opened;
    return std::make_unique<LiveReader>(options, [n = 0](LiveReader&) mutable {
      if (n == 4) throw media::Error("gone");
      media::SampledFrame frame = LiveReader::frame(0.5 * n++);
      frame.motion = std::make_shared<media::MotionField>();
      return std::optional(frame);
    });
  };
  settings_ = pruned(config::Pace::realtime);
  settings_->inputs[0].url = {kUrl, kUrl};
  Camera gate({settings_, watched(*settings_), shape_, false, 0, 7}, open, clock_, pulse_, recorder_);
  gate.grant(100);
  for (int i = 0; i < 40 && patches_.size() < 4; ++i) {
    const CameraStep step = run(gate, 4);
    if (step.next == Next::rest) clock_.advance(std::chrono::ceil<base::Duration>(step.until - clock_.now()));
  }
  EXPECT_EQ(opened, 2);
  EXPECT_THAT(kept(), ElementsAre(2, 0, 2, 0));
}

TEST_F(LiveCameraTest, NothingThatItSaysHoldsACredential) {
  Camera gate =
      live([](const std::string&, const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
        throw media::Error("rtsp://viewer:***@10.0.0.1/live: no");
      });
  run(gate);
  EXPECT_THAT(recorder_.states, ElementsAre("connecting: rtsp://***@10.0.0.1/live?***",
                                            "down: rtsp://viewer:***@10.0.0.1/live: no"));
}

TEST_F(LiveCameraTest, APictureThatTheModelCannotTakeIsAFaultOfItsSource) {
  shape_.size = [](media::Size) -> media::Size { throw std::invalid_argument("4000x2 is too wide"); };
  Camera gate =
      live([](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        options.size({4000, 2});
        return nullptr;
      });
  EXPECT_EQ(run(gate).next, Next::rest);
  EXPECT_EQ(recorder_.states.back(), "down: rtsp://***@10.0.0.1/live?***: 4000x2 is too wide");
}

TEST_F(LiveCameraTest, AfterARefusalItWaitsLongestAtOnce) {
  Camera gate =
      live([](const std::string&, const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
        throw media::Error("401 Unauthorized", media::Error::Kind::unauthorized);
      });
  const CameraStep step = run(gate);
  EXPECT_EQ(step.next, Next::rest);
  EXPECT_GE(step.until - clock_.now(), 16s);
  EXPECT_LE(step.until - clock_.now(), 32s);
}

TEST_F(LiveCameraTest, WithoutADescriptorItIsTriedSoonAndItsWaitsDoNotGrow) {
  int attempts = 0;
  Camera gate =
      live([&](const std::string&, const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
        if (++attempts > 10) throw media::Error("refused");
        throw media::Error("no file descriptor is left", media::Error::Kind::no_descriptor);
      });
  for (int attempt = 0; attempt < 10; ++attempt) {
    const CameraStep step = run(gate);
    ASSERT_EQ(step.next, Next::rest);
    EXPECT_TRUE(step.no_descriptor);
    EXPECT_EQ(step.until - clock_.now(), 1s);
    clock_.advance(1s);
  }
  const CameraStep step = run(gate);
  EXPECT_FALSE(step.no_descriptor);
  EXPECT_LE(step.until - clock_.now(), 1s) << "the first failure of the camera itself";
  EXPECT_THAT(recorder_.states,
              ElementsAre(StartsWith("connecting"), "down: no file descriptor is left", "down: refused"));
}

TEST_F(LiveCameraTest, ItsSuccessorGoesOnWithItsAttempts) {
  const auto refuse = [](const std::string&,
                         const media::ReadOptions&) -> std::unique_ptr<media::VideoReader> {
    throw media::Error("refused");
  };
  settings_ = camera("gate", config::Pace::realtime, kUrl);
  settings_->stream.reconnect = {1s, 32s};
  CameraOptions options{settings_, watched(*settings_), {2, {}}};
  options.backoff = std::make_shared<Backoff>(settings_->stream.reconnect, 7);
  base::Duration last(0);
  for (int incarnation = 0; incarnation < 5; ++incarnation) {
    Camera gate(options, refuse, clock_, pulse_, recorder_);
    const CameraStep step = run(gate);
    ASSERT_EQ(step.next, Next::rest);
    const auto wait = std::chrono::ceil<base::Duration>(step.until - clock_.now());
    EXPECT_GT(wait, last / 2);
    last = wait;
    options.retrying = true;
  }
  EXPECT_GE(last, 8s);
  EXPECT_EQ(std::count(recorder_.states.begin(), recorder_.states.end(), recorder_.states.front()), 1)
      << "only the first one says that it connects";
}

TEST_F(LiveCameraTest, ItStaysDownUntilItDeliversAndTellsNewReasonsOnly) {
  std::deque<std::string> errors = {"refused", "refused", "no route", "refused"};
  Camera gate =
      live([&](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        if (!errors.empty()) {
          const std::string error = errors.front();
          errors.pop_front();
          throw media::Error(error);
        }
        return std::make_unique<LiveReader>(options,
                                            [this](LiveReader& reader) -> std::optional<media::SampledFrame> {
                                              if (recorder_.frames < 2)
                                                return LiveReader::frame(recorder_.frames / 2.0);
                                              reader.stats_.broken_by = "Connection reset by peer";
                                              return std::nullopt;
                                            });
      });
  gate.grant(10);
  play(gate, 30s);
  EXPECT_THAT(recorder_.states,
              ElementsAre(StartsWith("connecting"), "down: refused", "down: no route", "down: refused", "up",
                          "down: the source ended: Connection reset by peer"));
  EXPECT_GT(recorder_.reconnects, 4);
}

// Who wanted a file to be watched once wanted all of it.
TEST_F(LiveCameraTest, AFileThatEndsEarlyHasFailedIfItWasToBePlayedOnce) {
  settings_ = camera("gate", config::Pace::fast, "/clips/cut.mp4");
  const ReaderFactory open = [this](const std::string&, const media::ReadOptions& options) {
    return std::make_unique<LiveReader>(options,
                                        [this](LiveReader& reader) -> std::optional<media::SampledFrame> {
                                          if (recorder_.frames < 2)
                                            return LiveReader::frame(recorder_.frames / 2.0);
                                          reader.stats_.broken_by = "partial file";
                                          return std::nullopt;
                                        });
  };
  for (const bool once : {true, false}) {
    recorder_ = {};
    Camera gate({settings_, watched(*settings_), shape_, once, 0, 7}, open, clock_, pulse_, recorder_);
    gate.grant(10);
    run(gate);
    EXPECT_EQ(recorder_.states.back(), "down: the file ended early: partial file");
    EXPECT_EQ(gate.failure().value_or("none"), once ? "the file ended early: partial file" : "none");
  }
}

TEST_F(LiveCameraTest, AfterItWasLostEveryAttemptOpensAnew) {
  int opened = 0;
  Camera gate =
      live([&](const std::string&, const media::ReadOptions& options) -> std::unique_ptr<media::VideoReader> {
        ++opened;
        return std::make_unique<LiveReader>(
            options, [first = true](LiveReader&) mutable -> std::optional<media::SampledFrame> {
              if (!std::exchange(first, false))
                throw media::Error("nothing came for 15.00 s", media::Error::Kind::timeout);
              return LiveReader::frame(0);
            });
      });
  gate.grant(100);
  play(gate, 20s);
  EXPECT_GT(opened, 10) << "each success makes the next wait short";
  EXPECT_EQ(recorder_.frames, opened);
  for (std::size_t i = 1; i < patches_.size(); ++i) EXPECT_GT(patches_[i]->seconds, patches_[i - 1]->seconds);
}

TEST_F(LiveCameraTest, ItsTimeIsSetByTheClockWhenItFallsBehind) {
  // The source was silent for 40 s, and its timestamps do not tell: a frame a half second, as ever.
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    clock_.advance(++calls == 4 ? 40s : 500ms);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 4);
  ASSERT_EQ(patches_.size(), 4U);
  EXPECT_EQ(patches_[1]->frames.size(), 1U) << "no patch spans the gap";
  EXPECT_THAT(times(), ElementsAre(DoubleNear(0.5, 1e-9), DoubleNear(1.5, 1e-9), DoubleNear(41.5, 1e-9),
                                   DoubleNear(42.5, 1e-9)));
}

TEST_F(LiveCameraTest, ALittleLatenessIsNoGap) {
  int calls = 0;
  Camera gate = live([&](LiveReader&) {
    clock_.advance(++calls == 4 ? 9s : 500ms);
    return LiveReader::frame(calls * 0.5);
  });
  gate.grant(100);
  run(gate, 4);
  EXPECT_THAT(times(), ElementsAre(0.5, 1.5, 2.5, 3.5));
}

TEST_F(LiveCameraTest, ARecordingThatIsSentAtOnceIsPaced) {
  int calls = 0;
  Camera gate = live([&](LiveReader&) { return LiveReader::frame(calls++ * 0.5); }, /*duration=*/60);
  gate.grant(100);
  const auto start = clock_.now();
  play(gate, 5s);
  EXPECT_EQ(recorder_.frames, 11);
  EXPECT_EQ(clock_.now() - start, 5s);
}

TEST(Backoff, IsBoundedAndJittered) {
  Backoff one({1s, 30s}, 1);
  Backoff other({1s, 30s}, 2);
  bool differ = false;
  base::Duration ceiling = 1s;
  for (int i = 0; i < 100; ++i) {
    const base::Duration wait = one.next();
    EXPECT_GE(wait, ceiling / 2);
    EXPECT_LE(wait, ceiling);
    differ = differ || wait != other.next();
    ceiling = std::min<base::Duration>(2 * ceiling, 30s);
  }
  EXPECT_TRUE(differ);
}

}  // namespace
}  // namespace vigil::actors
