// How a camera's source is opened, lost and tried again, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/camera/camera.h"
#include "tests/actors/camera/cameras.h"

namespace vigil::actors {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::StartsWith;

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

}  // namespace
}  // namespace vigil::actors
