// How a run comes to its end: what a signal does, and what is not waited for any more.
#pragma once

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

#include <caf/actor_system.hpp>
#include <spdlog/logger.h>

#include "base/duration.h"

namespace vigil::services {

/// What a signal that asks for the end does: at first it ends the process, since there is nothing that would
/// be lost. Thread-safe.
class Ending {
 public:
  /// `code`: with which the process ends as long as nothing would be lost.
  explicit Ending(int code) : code_(code) {}

  void ask();
  bool was_asked() const { return was_asked_; }

  /// While it lives, who asks for the end calls `stop`, on his own thread; its own end calls it, too, so that
  /// there is an end to wait for, and from then on nothing does.
  class Stopping {
   public:
    Stopping(Ending& ending, std::function<void()> stop);
    ~Stopping();
    Stopping(const Stopping&) = delete;
    Stopping& operator=(const Stopping&) = delete;

   private:
    Ending& ending_;
    std::function<void()> stop_;
  };

 private:
  void set(std::function<void()> stop);

  std::mutex mutex_;
  std::atomic<bool> was_asked_ = false;
  int code_;
  /// Null: the process ends.
  std::optional<std::function<void()>> stop_;
};

/// Whether all actors end within so long. Who is hidden is not waited for.
bool end_within(caf::actor_system& system, base::Duration patience);

/// Ends the process at once, as a second signal asks for it, and says so if that takes no time.
[[noreturn]] void quit();

/// Ends the process as failed, at once: a source or a computation that does not come to an end must not keep
/// it.
[[noreturn]] void leave(spdlog::logger& logger);

}  // namespace vigil::services
