// What a running process says on stderr: lines for people, or one JSON object a line.
#pragma once

#include <memory>
#include <string>

#include <spdlog/formatter.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include "config/settings.h"

namespace vigil::services {

/// {"time", "level", "message"} and the fields of actors::LogFields, in one line, whatever bytes they have.
class JsonLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override;
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonLines>(); }
};

/// Lines for people. What others said in them ends no line and moves no cursor.
class PlainLines final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override;
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<PlainLines>(); }
};

/// A logger that writes to stderr, or to another descriptor, as it is configured.
std::shared_ptr<spdlog::logger> make_logger(const config::LogSettings& settings,
                                            int descriptor = STDERR_FILENO);

spdlog::level::level_enum log_level(const config::LogSettings& settings);

/// What is said whatever the level of the log is: "vigil: TEXT" for people, a line of the log for programs.
class Announcer {
 public:
  /// Writes where `logger` does.
  explicit Announcer(const spdlog::logger& logger);

  void info(const std::string& text) { logger_.info("{}", text); }
  void warn(const std::string& text) { logger_.warn("{}", text); }
  void error(const std::string& text) { logger_.error("{}", text); }

 private:
  spdlog::logger logger_;
};

}  // namespace vigil::services
