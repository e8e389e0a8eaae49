// Servers that answer, refuse, stay silent, drop what comes, have no name, or speak another language.
#include "media/reach.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include "media/media.h"
#include "media/server.h"
#include "tests/media/listener.h"

namespace vigil::media {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ReachTest : public ::testing::Test {
 protected:
  void start(std::chrono::milliseconds time) {
    reach_ = Reach::make(
        [this](const Reach::Answer& answer) {
          const std::lock_guard lock(mutex_);
          answers_[answer.ticket].push_back(answer);
          ++count_;
          changed_.notify_all();
        },
        {.time = time, .resolvers = 4});
  }

  /// Once so many answers have come in all.
  std::map<std::uint64_t, std::vector<Reach::Answer>> await(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return count_ >= count; })) << count_ << " answers";
    return answers_;
  }

  std::string ask(const std::string& url) {
    reach_->ask(1, url, "");
    const auto answers = await(1);
    return answers.empty() ? "none" : answers.at(1).at(0).failure;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::uint64_t, std::vector<Reach::Answer>> answers_;
  std::size_t count_ = 0;
  std::unique_ptr<Reach> reach_;
};

/// What opening the same says.
std::string open_failure(const std::string& url, std::chrono::milliseconds time) {
  ReadOptions options;
  options.open_timeout = time;
  try {
    VideoReader::open(url, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "opened";
}

TEST_F(ReachTest, AServerThatAnswersIsWorthAnAttempt) {
  const Listener server;
  start(20s);
  std::string said;
  std::jthread camera([&] { said = server.serve("RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n"); });
  EXPECT_EQ(ask(server.url("rtsp", "/live?channel=1")), "");
  camera.join();
  EXPECT_THAT(said, StartsWith("OPTIONS rtsp://127.0.0.1:"));
  EXPECT_THAT(said, HasSubstr("/live?channel=1 RTSP/1.0\r\nCSeq: 1\r\n\r\n"));
  EXPECT_THAT(said, ::testing::Not(HasSubstr("hunter2")));
}

TEST_F(ReachTest, OneThatHangsUpIsForTheAttemptToJudge) {
  const Listener server;
  start(20s);
  std::jthread camera([&] { server.serve(""); });
  EXPECT_EQ(ask(server.url()), "");
}

TEST_F(ReachTest, FailuresReadAsThoseOfOpening) {
  Listener refused;
  refused.stop();
  const Listener hole(0);
  const Listener mute;
  start(300ms);
  const std::vector<std::string> urls = {refused.url(),
                                         hole.url(),
                                         mute.url(),
                                         "rtsp://viewer:hunter2@camera.invalid/live",
                                         refused.url("http", "/x.mjpeg"),
                                         hole.url("tcp", "")};
  for (std::size_t i = 0; i < urls.size(); ++i) reach_->ask(i + 1, urls[i], "");
  const auto answers = await(urls.size());
  for (std::size_t i = 0; i < urls.size(); ++i) {
    ASSERT_EQ(answers.at(i + 1).size(), 1U) << urls[i];
    const Reach::Answer& answer = answers.at(i + 1)[0];
    EXPECT_EQ(answer.failure, open_failure(urls[i], 300ms));
    EXPECT_FALSE(answer.no_descriptor);
    EXPECT_THAT(answer.failure, ::testing::Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(answers.at(1)[0].failure, refused.shown() + ": Connection refused");
  EXPECT_EQ(answers.at(3)[0].failure, mute.shown() + ": nothing came for 0.30 s");
}

TEST_F(ReachTest, WhereNoGreetingIsKnownAConnectionIsAnAnswer) {
  const Listener mute;
  start(20s);
  EXPECT_EQ(ask(mute.url("http")), "");
}

TEST_F(ReachTest, ManyThatDoNotAnswerHoldUpNobody) {
  const Listener hole(0);
  const Listener mute;
  const Listener good;
  start(60s);
  for (std::uint64_t i = 0; i < 300; ++i) reach_->ask(100 + i, i % 2 == 0 ? hole.url() : mute.url(), "");
  for (std::uint64_t i = 0; i < 100; ++i)
    reach_->ask(1000 + i, "rtsp://camera-" + std::to_string(i) + ".invalid/live", "");
  std::jthread camera([&] { good.serve("RTSP/1.0 200 OK\r\n\r\n"); });
  reach_->ask(1, good.url(), "");
  const auto begin = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return answers_.contains(1); }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  lock.unlock();
  const auto end = std::chrono::steady_clock::now();
  reach_.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - end, 5s) << "it waits for nobody";
}

TEST_F(ReachTest, WhatIsForgottenIsNotAnswered) {
  const Listener mute;
  start(300ms);
  reach_->ask(1, mute.url(), "");
  reach_->ask(2, mute.url(), "");
  reach_->ask(3, "rtsp://camera.invalid/live", "");
  reach_->forget(1);
  reach_->forget(3);
  reach_->forget(17);
  EXPECT_FALSE(await(1).contains(1));
}

TEST_F(ReachTest, WithoutADescriptorItSaysSo) {
  const Listener mute;
  start(20s);
  // The thread is up when the first has been answered.
  EXPECT_THAT(ask("rtsp://127.0.0.1:1/live"), HasSubstr("refused"));
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  reach_->ask(2, mute.url(), "");
  const auto answers = await(2);
  std::string line;
  Error::Kind kind = Error::Kind::source;
  try {
    VideoReader::open(mute.url(), {});
  } catch (const Error& error) {
    line = error.what();
    kind = error.kind();
  }
  // Its name cannot be resolved without one, either, whatever the resolver says.
  Error::Kind of_name = Error::Kind::source;
  try {
    VideoReader::open("rtsp://camera.invalid/live", {});
  } catch (const Error& error) {
    of_name = error.kind();
  }
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(answers.at(2).at(0).no_descriptor);
  EXPECT_EQ(kind, Error::Kind::no_descriptor);
  EXPECT_EQ(line, mute.shown() + ": no file descriptor is left");
  EXPECT_EQ(of_name, Error::Kind::no_descriptor);
}

/// While it lives, this machine has no memory for the stack of another thread.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t endless;
    pthread_getattr_default_np(&endless);
    pthread_attr_setstacksize(&endless, std::size_t{1} << 56);
    pthread_setattr_default_np(&endless);
    pthread_attr_destroy(&endless);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t before_{};
};

TEST_F(ReachTest, WithoutAThreadForItsNameAServerIsNotReachedAndTheOthersAre) {
  const Listener mute;
  const std::string name = "rtsp://viewer:hunter2@camera.invalid/live";
  start(20s);
  // The thread is up when the first has been answered.
  EXPECT_THAT(ask("rtsp://127.0.0.1:1/live"), HasSubstr("refused"));
  {
    const NoThreads none;
    ASSERT_THROW(std::thread([] {}).join(), std::system_error);
    reach_->ask(2, name, "");
    reach_->ask(3, mute.url("http"), "");
    const auto answers = await(3);
    EXPECT_EQ(answers.at(2).at(0).failure,
              "rtsp://***@camera.invalid/live: no thread is left to resolve hostname camera.invalid");
    EXPECT_EQ(answers.at(3).at(0).failure, "");
  }
  reach_->ask(4, name, "");
  EXPECT_THAT(await(4).at(4).at(0).failure, HasSubstr("Failed to resolve hostname"));
  // One thread there is, then, which resolves them all.
  const NoThreads more;
  for (std::uint64_t i = 5; i < 25; ++i) reach_->ask(i, name, "");
  for (const auto& [ticket, answers] : await(24)) {
    if (ticket >= 5) {
      EXPECT_THAT(answers.at(0).failure, HasSubstr("Failed to resolve hostname"));
    }
  }
}

TEST(ServerOf, IsWhatFFmpegWouldConnectTo) {
  const auto text = [](const std::string& url) {
    const auto server = server_of(url);
    return server ? server->host + ' ' + server->port : "none";
  };
  EXPECT_EQ(text("rtsp://10.0.0.1/live"), "10.0.0.1 554");
  EXPECT_EQ(text("rtsps://cam.lan/live"), "cam.lan 322");
  EXPECT_EQ(text("http://cam.lan"), "cam.lan 80");
  EXPECT_EQ(text("https://cam.lan?x=y"), "cam.lan 443");
  EXPECT_EQ(text("rtmp://cam.lan/app"), "cam.lan 1935");
  EXPECT_EQ(text("rtsp://u:p%2F@w@10.0.0.1:8554/live"), "10.0.0.1 8554") << "the last @ ends the password";
  EXPECT_EQ(text("rtsp://[::1]:8554/live"), "::1 8554");
  EXPECT_EQ(text("rtsp://u:p@[fe80::1%25eth0]/live"), "fe80::1%25eth0 554");
  EXPECT_EQ(text("rtsp://10.0.0.1/a@b:99/live"), "10.0.0.1 554");
  for (const char* url : {"", "rtsp", "rtsp://", "rtsp:///live", "rtsp://u@/live", "rtsp://h:0/",
                          "rtsp://h:65536/", "rtsp://h:x/", "rtsp://[::1/", "rtsp://h/\r\nDESCRIBE",
                          "tcp://h", "tcp://h:1?listen", "ftp://h/x", "udp://h:1", "file:///x", "/x://y"})
    EXPECT_EQ(text(url), "none") << url;
  EXPECT_EQ(server_of("rtsp://[::1]/live")->greeting,
            "OPTIONS rtsp://[::1]:554/live RTSP/1.0\r\nCSeq: 1\r\n\r\n");
  EXPECT_EQ(server_of("rtsp://h/live?http")->greeting, "") << "it speaks HTTP first";
}

}  // namespace
}  // namespace vigil::media
