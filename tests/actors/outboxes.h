// What the tests of outboxes share: a folder, events that say what they are, and a clock that is told the
// time.
#pragma once

#include <csignal>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors/alerts/outbox.h"
#include "base/clock.h"
#include "config/running/retention_clock.h"
#include "tests/actors/watched_outbox.h"
#include "tests/temporary_folder.h"

namespace vigil::actors::testing {

using namespace std::chrono_literals;

// 2026-08-01T10:00:00Z
inline constexpr base::Clock::WallTime kStart{std::chrono::seconds(1785578400)};

class OutboxClock final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(1h) + passed; }
  WallTime wall() const override { return kStart + passed + ahead; }
  base::Duration passed{0};
  /// How far the machine's wall clock was set.
  base::Duration ahead{0};
};

/// Where an outbox has its own folder.
class OutboxFolder : public TemporaryFolder {
 public:
  std::filesystem::path outbox() const { return path() / "deep" / "outbox"; }
};

inline OutboxEvent event(const std::string& topic, std::uint64_t sequence,
                         base::Clock::WallTime time = kStart) {
  return {0, topic, sequence, time, topic + '#' + std::to_string(sequence) + std::string("\0\n\xff", 3)};
}

/// "POSITION:TOPIC#SEQUENCE@MILLISECONDS" of each; checks that the bodies are those of `event`.
inline std::vector<std::string> shown(const std::vector<OutboxEvent>& events) {
  std::vector<std::string> result;
  for (const OutboxEvent& each : events) {
    EXPECT_TRUE(each.body.starts_with(event(each.topic, each.sequence).body)) << each.body;
    result.push_back(std::to_string(each.position) + ':' + each.topic + '#' + std::to_string(each.sequence) +
                     '@' + std::to_string((each.time - kStart) / 1ms));
  }
  return result;
}

inline ReplayQuery query(std::vector<std::string> topics, std::uint64_t after = 0) {
  ReplayQuery result;
  result.topics = std::move(topics);
  result.after = after;
  return result;
}

/// Runs `work` in a process of its own, which is then killed without a chance to tidy up; 0, or the status
/// with which it ended by itself.
template <class F>
int run_and_kill(F work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    ::kill(getpid(), SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : status;
}

}  // namespace vigil::actors::testing
