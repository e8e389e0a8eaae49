// Clips and stills of cameras whose server is not ours: packets over RTP, and what such servers do to them.
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "media/packet_history.h"
#include "tests/rtsp/server.h"
#include "tests/temporary_folder.h"

namespace vigil::testing {
namespace {

using namespace ::testing;

class RtspEvidence : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string missing = GStreamer::missing(); !missing.empty()) GTEST_SKIP() << missing;
  }

  void open(const std::string& url) {
    media::ReadOptions options;
    options.fps = 5;
    options.motion = false;
    options.history = history_;
    options.open_timeout = options.read_timeout = std::chrono::seconds(20);
    reader_ = media::VideoReader::open(url, options);
  }

  /// Reads up to a time of the stream.
  void read_to(double seconds) {
    while (seconds_ < seconds) {
      const auto frame = reader_->next();
      ASSERT_TRUE(frame.has_value());
      seconds_ = frame->seconds;
      history_->anchor(frame->timestamp, seconds_);
    }
  }

  struct Made {
    media::SourceInfo info;
    std::vector<media::SampledFrame> frames;
  };

  /// The clip, read again frame by frame: without damage, and as long as it is said to be.
  Made make(const media::Span& span, double rate = 10) {
    const media::Cut cut = history_->cut(span);
    EXPECT_LE(cut.from(), span.from + 0.05);
    EXPECT_GE(cut.to(), span.to - 0.05);
    EXPECT_NEAR(cut.still(span.moment).seconds, span.moment, 0.11);
    const std::string path = folder_ / ("clip" + cut.extension());
    cut.write_clip(path);
    media::ReadOptions options;
    options.fps = 1000;
    options.motion = true;
    const auto reader = media::VideoReader::open(path, options);
    Made made;
    while (auto frame = reader->next()) made.frames.push_back(std::move(*frame));
    made.info = reader->info();
    EXPECT_EQ(reader->stats().damaged_packets, 0U) << reader->stats().last_damage;
    EXPECT_EQ(reader->stats().timestamp_jumps, 0U);
    EXPECT_NEAR(made.info.duration_seconds, cut.to() - cut.from(), 0.2);
    EXPECT_NEAR(static_cast<double>(made.frames.size()), (cut.to() - cut.from()) * rate, 2);
    return made;
  }

  const TemporaryFolder folder_;
  std::shared_ptr<media::PacketHistory> history_ =
      std::make_shared<media::PacketHistory>(media::PacketHistory::Limits{});
  std::unique_ptr<media::VideoReader> reader_;
  double seconds_ = -1;
};

TEST_F(RtspEvidence, IsCutFromEveryCodec) {
  const GStreamer server;
  for (const auto& [stream, codec] : {std::pair("live", "h264"), {"mjpeg", "mjpeg"}, {"vp8", "vp8"}}) {
    history_->clear();
    seconds_ = -1;
    open(server.url(stream));
    read_to(5);
    const Made made = make({2.5, 4.5, 4});
    EXPECT_EQ(made.info.codec, codec);
    EXPECT_EQ(made.info.size, (media::Size{160, 120}));
  }
}

TEST_F(RtspEvidence, GoesOnWhereTheServersClockIsSet) {
  GStreamer server;
  open(server.url("live"));
  read_to(3);
  server.tell("jump live 3600");
  read_to(6);
  make({2.5, 5.5, 5});
}

TEST_F(RtspEvidence, HasOneSizeOfPictures) {
  GStreamer server;
  open(server.url("live"));
  read_to(3);
  server.tell("resize live 320 240");
  while (true) {
    const auto frame = reader_->next();
    ASSERT_TRUE(frame.has_value());
    history_->anchor(frame->timestamp, frame->seconds);
    seconds_ = frame->seconds;
    if (frame->source_size.width == 320) break;
  }
  const double changed = seconds_;
  read_to(changed + 3);
  // The new pictures come at another rate, too.
  const Made after = make({changed + 0.3, changed + 2, changed + 1}, 30);
  for (const auto& frame : after.frames) EXPECT_EQ(frame.source_size, (media::Size{320, 240}));
  EXPECT_EQ(after.info.size, (media::Size{320, 240}));
  const media::Cut before = history_->cut({1, changed + 2, changed - 0.5});
  EXPECT_LE(before.to(), changed + 0.15);
  EXPECT_EQ(before.still(changed - 0.5).image.size, (media::Size{160, 120}));
}

}  // namespace
}  // namespace vigil::testing
