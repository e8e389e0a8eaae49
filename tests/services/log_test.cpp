#include "services/log.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include "actors/messages/log_fields.h"
#include "base/descriptor.h"
#include "tests/temporary_folder.h"

namespace vigil::services {
namespace {

using actors::LogFields;
using nlohmann::json;

class JsonLog : public testing::Test {
 protected:
  JsonLog() : logger_("vigil", std::make_shared<spdlog::sinks::ostream_sink_st>(lines_)) {
    logger_.set_formatter(std::make_unique<JsonLines>());
  }
  json last() {
    const std::string text = lines_.str();
    lines_.str("");
    EXPECT_EQ(text.find('\n'), text.size() - 1) << text;
    return json::parse(text);
  }
  std::ostringstream lines_;
  spdlog::logger logger_;
};

TEST_F(JsonLog, ALineIsOneObjectWhateverIsSaid) {
  logger_.warn("camera {}: {}", "gate", "a \"b\"\n{}\x01\xff\\");
  const json line = last();
  EXPECT_EQ(line.size(), 3U);
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["message"], "camera gate: a \"b\"\n{}\x01\xEF\xBF\xBD\\");
  EXPECT_EQ(line["time"].get<std::string>().size(), 24U);
}

TEST_F(JsonLog, AnActorsFieldsStandBesideTheMessage) {
  actors::WatchSettings camera;
  camera.name = "gate";
  camera.tenant = "north";
  {
    const LogFields about(camera);
    logger_.info("camera gate: up");
    EXPECT_EQ(last()["camera"], "gate");
    {
      const LogFields other(LogFields::Fields{{"episode", "7"}});
      logger_.info("inner");
      const json line = last();
      EXPECT_EQ(line["episode"], "7");
      EXPECT_FALSE(line.contains("camera"));
    }
    logger_.info("camera gate: down");
    const json line = last();
    EXPECT_EQ(line["camera"], "gate");
    EXPECT_EQ(line["tenant"], "north");
  }
  logger_.info("nobody's");
  EXPECT_EQ(last().size(), 3U);
}

TEST_F(JsonLog, AnnouncementsAreLinesOfTheLogWhateverItsLevel) {
  logger_.set_level(spdlog::level::off);
  Announcer announcer(logger_);
  announcer.info("watching {} cameras");
  const json line = last();
  EXPECT_EQ(line["message"], "watching {} cameras");
  EXPECT_EQ(line["level"], "info");
}

/// A pipe that nobody reads unless the test does.
class Pipe {
 public:
  Pipe() {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    EXPECT_EQ(::fcntl(ends_[1], F_SETPIPE_SZ, 8192), 8192);
    EXPECT_EQ(::fcntl(ends_[0], F_SETFL, O_NONBLOCK), 0);
  }
  ~Pipe() {
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int in() const { return ends_[1]; }
  std::string read() const {
    std::string text(1 << 16, '\0');
    const ssize_t count = ::read(ends_[0], text.data(), text.size());
    text.resize(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

TEST(Log, WaitsForNobodyWhoDoesNotReadIt) {
  const Pipe pipe;
  config::LogSettings settings;
  settings.level = config::LogLevel::info;
  const auto logger = make_logger(settings, pipe.in());
  constexpr int kLines = 1000;
  // It would block for ever.
  for (int i = 0; i < kLines; ++i) logger->info("{:0100}", i);
  const std::string first = pipe.read();
  const auto lines = std::count(first.begin(), first.end(), '\n');
  EXPECT_GT(lines, 10);
  EXPECT_EQ(first.back(), '\n') << "no line is cut";
  logger->info("next");
  const std::string then = pipe.read();
  EXPECT_NE(then.find("log: " + std::to_string(kLines - lines) + " lines are lost"), std::string::npos)
      << then;
  EXPECT_EQ(then.find("next\n"), then.size() - 5) << then;
  logger->info("last");
  EXPECT_EQ(pipe.read().find("lost"), std::string::npos);
}

TEST(Log, ALineThatIsCutOffEndsBeforeTheNext) {
  const Pipe pipe;
  config::LogSettings settings;
  settings.level = config::LogLevel::info;
  const auto logger = make_logger(settings, pipe.in());
  logger->info("{}", std::string(20'000, 'x'));
  const std::string first = pipe.read();
  EXPECT_EQ(first.size(), 8192U) << "what the pipe holds";
  logger->info("next");
  const std::string then = pipe.read();
  EXPECT_EQ(then.front(), '\n');
  EXPECT_NE(then.find("log: 1 lines are lost"), std::string::npos) << then;
  EXPECT_EQ(then.find("next\n"), then.size() - 5) << then;
}

// One that takes a line every 40 ms would hold every thread to that.
TEST(Log, ASlowReaderIsWaitedForNowAndThen) {
  const Pipe pipe;
  config::LogSettings settings;
  settings.level = config::LogLevel::info;
  const auto logger = make_logger(settings, pipe.in());
  const auto fill = [&logger] {
    for (int i = 0; i < 20; ++i) logger->info("{:01000}", i);
  };
  fill();
  pipe.read();
  logger->info("whole again");
  pipe.read();
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    fill();
    pipe.read();
    logger->info("whole again");
    pipe.read();
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(400))
      << "a moment for each, 500 ms";
}

TEST(Log, AnnouncementsAreWordsForPeople) {
  const Pipe pipe;
  config::LogSettings settings;
  settings.level = config::LogLevel::off;
  Announcer announcer(*make_logger(settings, pipe.in()));
  announcer.warn("odd\x1b");
  EXPECT_EQ(pipe.read(), "vigil: odd?\n") << "whatever the level";
}

TEST(Log, OutlivesItsReader) {
  const TemporaryFolder folder;
  const std::string name = folder / "log";
  ASSERT_EQ(::mkfifo(name.c_str(), 0600), 0);
  const auto open = [&name](int flags) { return base::Descriptor(::open(name.c_str(), flags | O_NONBLOCK)); };
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  base::Descriptor reader = open(O_RDONLY);
  const base::Descriptor writer = open(O_WRONLY);
  const auto logger = make_logger({}, writer.number());
  Announcer announcer(*logger);
  reader = base::Descriptor();
  logger->error("nobody hears this");
  announcer.info("nor this");
  reader = open(O_RDONLY);
  logger->error("next");
  std::signal(SIGPIPE, before);
  std::string text(4096, '\0');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(::read(reader.number(), text.data(), text.size()), 0)));
  EXPECT_EQ(text.find("hears"), std::string::npos) << text;
  EXPECT_NE(text.find("lines are lost"), std::string::npos) << text;
  EXPECT_NE(text.find("next\n"), std::string::npos) << text;
}

TEST(Log, WhatOthersSayEndsNoLineAndSetsNoColour) {
  const Pipe pipe;
  const auto logger = make_logger({}, pipe.in());
  logger->error("camera room: {}", "http://x/\r2026-11-23 00:00:00.000 info camera room: up\x1b[31m\xff\n");
  const std::string text = pipe.read();
  EXPECT_NE(text.find("error camera room: http://x/?2026-11-23"), std::string::npos) << text;
  EXPECT_EQ(text.find_first_of("\r\x1b\xff"), std::string::npos);
  EXPECT_EQ(text.find('\n'), text.size() - 1);
}

}  // namespace
}  // namespace vigil::services
