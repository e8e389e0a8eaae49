// What the log says of cameras: in which words, how loud, and how much of it. Without actors.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <spdlog/logger.h>

#include "actors/messages/reports.h"
#include "actors/supervisor/fleet.h"
#include "actors/supervisor/line_budget.h"
#include "base/clock.h"

namespace vigil::actors {

/// Lines about single cameras are bounded; beyond, a line tells how many there were. Not thread-safe.
class CameraLog {
 public:
  static constexpr std::size_t kMostLines = 100;
  static constexpr std::chrono::minutes kSpan{1};

  /// Both have to outlive it.
  CameraLog(spdlog::logger& logger, const base::Clock& clock) : logger_(logger), clock_(clock) {}

  /// `expected`: that it is down is what was asked for.
  void changed(const Fleet::Change& change, bool expected);
  /// Its packets are kept, or are not.
  void recorded(const RecorderReport& news, const WatchSettings& watch);
  /// No descriptor is left for any source, or there are some again.
  void exhausted(bool exhausted);
  /// To be called now and then: tells what was left out.
  void tick();

 private:
  void log(spdlog::level::level_enum level, const std::string& line);

  spdlog::logger& logger_;
  const base::Clock& clock_;
  LineBudget lines_{kMostLines, kSpan};
};

}  // namespace vigil::actors
