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
