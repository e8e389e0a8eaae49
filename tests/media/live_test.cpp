// Sources that keep one waiting: deadlines and cancelling, against a server that stays silent.
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/media/clip.h"

namespace vigil::media {
namespace {

// Listens on a free port of this machine; sends what it is told to and then stays silent, but keeps the line
// open.
class SilentServer {
 public:
  SilentServer() : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket_, reinterpret_cast<sockaddr*>(&address), size) != 0 || listen(socket_, 1) != 0 ||
        getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(address.sin_port);
  }
  ~SilentServer() {
    if (peer_ >= 0) close(peer_);
    close(socket_);
  }
  SilentServer(const SilentServer&) = delete;
  SilentServer& operator=(const SilentServer&) = delete;

  std::string url() const { return "tcp://viewer:hunter2@127.0.0.1:" + std::to_string(port_); }

  /// Blocks until somebody connects.
  void serve(const std::string& bytes) {
    peer_ = accept(socket_, nullptr, nullptr);
    for (std::size_t sent = 0; sent < bytes.size();) {
      const ssize_t now = send(peer_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (now <= 0) return;
      sent += static_cast<std::size_t>(now);
    }
  }

 private:
  int socket_;
  int peer_ = -1;
  int port_ = 0;
};

Error::Kind kind_of(const std::function<void()>& act, std::string& line) {
  try {
    act();
  } catch (const Error& error) {
    line = error.what();
    return error.kind();
  }
  throw std::runtime_error("no error");
}

TEST(Live, OpeningEndsAtItsDeadline) {
  SilentServer server;
  ReadOptions options;
  options.open_timeout = std::chrono::milliseconds(200);
  std::string line;
  EXPECT_EQ(kind_of([&] { VideoReader::open(server.url(), options); }, line), Error::Kind::timeout);
  EXPECT_THAT(line, testing::HasSubstr("nothing came for 0.20 s"));
  EXPECT_THAT(line, testing::Not(testing::HasSubstr("hunter2")));
}

TEST(Live, OpeningCanBeCancelledFromAnotherThread) {
  SilentServer server;
  std::stop_source stop;
  ReadOptions options;
  options.stop = stop.get_token();
  const std::jthread canceller([&] {
    server.serve("");
    stop.request_stop();
  });
  std::string line;
  EXPECT_EQ(kind_of([&] { VideoReader::open(server.url(), options); }, line), Error::Kind::cancelled);
}

TEST(Live, ReadingEndsAtItsDeadlineAfterWhatCame) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 100;
  write_clip(scratch / "a.ts", clip);
  SilentServer server;
  const std::jthread sender([&, bytes = read_bytes(scratch / "a.ts")] { server.serve(bytes); });
  ReadOptions options;
  options.input_format = "mpegts";
  options.input_options = {{"analyzeduration", "500000"}};
  options.open_timeout = std::chrono::seconds(20);
  options.read_timeout = std::chrono::milliseconds(300);
  const auto reader = VideoReader::open(server.url(), options);
  std::vector<double> seconds;
  std::string line;
  EXPECT_EQ(kind_of(
                [&] {
                  while (const auto sample = reader->next()) seconds.push_back(sample->seconds);
                },
                line),
            Error::Kind::timeout);
  // 4 s of video; the codec may hold back the last frames.
  EXPECT_THAT(seconds, testing::SizeIs(testing::AllOf(testing::Ge(7u), testing::Le(8u))));
}

TEST(Live, ReadingCanBeCancelled) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  std::stop_source stop;
  ReadOptions options;
  options.stop = stop.get_token();
  const auto reader = VideoReader::open(scratch / "a.mp4", options);
  ASSERT_TRUE(reader->next());
  stop.request_stop();
  std::string line;
  EXPECT_EQ(kind_of(
                [&] {
                  while (reader->next()) {
                  }
                },
                line),
            Error::Kind::cancelled);
}

TEST(Live, EveryPacketIsToldAsItIsRead) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 50;
  clip.gop = 10;
  write_clip(scratch / "a.ts", clip);
  std::size_t packets = 0;
  std::size_t keys = 0;
  std::size_t bytes = 0;
  ReadOptions options;
  options.fps = 0.1;
  options.on_packet = [&](const PacketInfo& packet) {
    ++packets;
    keys += packet.key ? 1 : 0;
    bytes += packet.bytes;
  };
  const auto read = read_all(scratch / "a.ts", options);
  EXPECT_EQ(read.samples.size(), 1U);
  EXPECT_EQ(packets, 50U) << "whether a sample is due or not";
  EXPECT_EQ(keys, 5U);
  EXPECT_GT(bytes, read_bytes(scratch / "a.ts").size() / 2);
  EXPECT_LE(bytes, read_bytes(scratch / "a.ts").size());
}

TEST(Live, PacketsWithoutAnyFrameEndInTime) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 50;
  clip.gop = 10;
  write_clip(scratch / "a.mp4", clip);
  // The packets keep their places and sizes, and lose their meaning.
  std::string bytes = read_bytes(scratch / "a.mp4");
  const std::size_t data = bytes.find("mdat");
  const std::size_t index = bytes.find("moov");
  ASSERT_LT(data, index);
  std::fill(bytes.begin() + static_cast<std::ptrdiff_t>(data) + 4,
            bytes.begin() + static_cast<std::ptrdiff_t>(index) - 4, '\x7f');
  write_bytes(scratch / "noise.mp4", bytes);
  ReadOptions options;
  options.frame_timeout = std::chrono::milliseconds(1);
  options.on_packet = [](const PacketInfo&) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  std::string line;
  EXPECT_EQ(kind_of([&] { VideoReader::open(scratch / "noise.mp4", options)->next(); }, line),
            Error::Kind::timeout);
  EXPECT_THAT(line, testing::HasSubstr("could be decoded"));
  options.frame_timeout = std::chrono::minutes(5);
  EXPECT_EQ(kind_of([&] { VideoReader::open(scratch / "noise.mp4", options)->next(); }, line),
            Error::Kind::source);
}

TEST(Live, AnotherCodecInTheMiddleEndsTheSource) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 50;
  write_clip(scratch / "a.ts", clip);
  clip.codec = "mpeg2video";
  clip.frames = 300;
  write_clip(scratch / "b.ts", clip);
  const std::string both = read_bytes(scratch / "a.ts") + read_bytes(scratch / "b.ts");
  SilentServer server;
  const std::jthread sender([&] { server.serve(both); });
  ReadOptions options;
  options.input_format = "mpegts";
  options.read_timeout = std::chrono::seconds(5);
  const auto reader = VideoReader::open(server.url(), options);
  int samples = 0;
  std::string line;
  EXPECT_EQ(kind_of(
                [&] {
                  while (reader->next()) ++samples;
                },
                line),
            Error::Kind::source);
  EXPECT_THAT(line, testing::HasSubstr("no packet can be decoded any more"));
  EXPECT_GE(samples, 3) << "what came before is there";
}

TEST(Live, AnotherStreamInTheMiddleEndsTheSource) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 50;
  write_clip(scratch / "a.ts", clip);
  clip.muxer_options = {{"mpegts_start_pid", "512"}, {"mpegts_pmt_start_pid", "4097"}};
  write_clip(scratch / "b.ts", clip);
  write_bytes(scratch / "both.ts", read_bytes(scratch / "a.ts") + read_bytes(scratch / "b.ts"));
  EXPECT_EQ(read_all(scratch / "both.ts").stats.broken_by, "the video goes on as another stream");
}

TEST(Live, AnotherSizeInTheMiddleIsFollowed) {
  const Scratch scratch;
  Clip clip;
  clip.frames = 50;
  write_clip(scratch / "a.ts", clip);
  clip.size = {320, 240};
  write_clip(scratch / "b.ts", clip);
  write_bytes(scratch / "both.ts", read_bytes(scratch / "a.ts") + read_bytes(scratch / "b.ts"));
  const auto read = read_all(scratch / "both.ts");
  EXPECT_EQ(read.stats.broken_by, "");
  EXPECT_EQ(read.stats.size_changes, 1U);
  ASSERT_THAT(read.samples, testing::SizeIs(testing::Ge(8)));
  EXPECT_EQ(read.samples.front().image->size, (Size{192, 128}));
  EXPECT_EQ(read.samples.back().image->size, (Size{320, 240}));
}

TEST(Live, ADeviceOfFFmpegIsOpenedByWhoeverNamesItsFormat) {
  ReadOptions options;
  options.fps = 2;
  options.input_format = "lavfi";
  const auto reader = VideoReader::open("testsrc=size=64x48:rate=10:duration=2", options);
  EXPECT_EQ(reader->info().container, "lavfi");
  int samples = 0;
  while (const auto sample = reader->next()) {
    EXPECT_EQ(sample->image->size, (Size{64, 48}));
    ++samples;
  }
  EXPECT_EQ(samples, 4);
  EXPECT_THAT(error_of("nosuchfilter", options), testing::HasSubstr("nosuchfilter"));
}

TEST(Live, CamerasOfVideo4LinuxAreOpenedByTheirScheme) {
  // Nothing is taken for a file of that name, and no other device is touched.
  EXPECT_THAT(error_of("v4l2:///dev/video-none"),
              testing::AllOf(testing::HasSubstr("/dev/video-none"), testing::HasSubstr("No such file")));
  EXPECT_THAT(error_of("v4l2:///dev/null"), testing::HasSubstr("not a camera of Video4Linux"));
}

TEST(Live, AnswersThatAreNoneAreErrorsInTime) {
  for (const std::string protocol : {"rtsp", "http"}) {
    SilentServer server;
    const std::jthread noise([&] {
      std::string bytes(100'000, '\0');
      for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i * 7919 >> 5);
      server.serve(bytes);
    });
    ReadOptions options;
    options.open_timeout = std::chrono::milliseconds(500);
    const std::string url = protocol + server.url().substr(3);
    std::string line;
    kind_of([&] { VideoReader::open(url, options); }, line);
    EXPECT_THAT(line, testing::StartsWith(protocol + "://***@127.0.0.1:"));
    EXPECT_THAT(line, testing::Not(testing::HasSubstr("hunter2")));
  }
}

TEST(Live, UnknownInputOptionsAndFormatsAreNamed) {
  const Scratch scratch;
  write_clip(scratch / "a.mp4", {});
  ReadOptions options;
  options.input_options = {{"rtsp_transprot", "tcp"}};
  EXPECT_THAT(error_of(scratch / "a.mp4", options), testing::HasSubstr("rtsp_transprot"));
  options = {};
  options.input_format = "mpegx";
  EXPECT_THAT(error_of(scratch / "a.mp4", options), testing::HasSubstr("mpegx"));
}

}  // namespace
}  // namespace vigil::media
