// By what time what is kept grows old.
#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::config {

/// A wall clock that moves only by time that is known to have passed, so that a step of the machine's clock
/// makes nothing old. It goes on with the monotonic clock, and never back. A machine's clock that is further
/// ahead or behind than `tolerance` is believed when it has been so, by about the same amount, for `patience`
/// by the monotonic clock; from then on one that is ahead is followed, and of one that is behind only the
/// pace. Thread-safe.
class RetentionClock {
 public:
  struct Options {
    base::Duration tolerance = std::chrono::minutes(1);
    base::Duration patience = std::chrono::minutes(10);
  };

  /// Begins at the machine's time. The clock has to outlive it.
  explicit RetentionClock(const base::Clock& clock) : RetentionClock(clock, Options()) {}
  RetentionClock(const base::Clock& clock, Options options);

  /// The time that a process before this one knew last: this one goes on from there, with the time that has
  /// passed since it was made, and has to wait to believe that the machine's clock tells how long nobody
  /// looked. Only the first call counts.
  void resume(base::Clock::WallTime last);

  base::Clock::WallTime now();

  /// What people should know of the machine's clock since the last call, as a line: that it stepped and is
  /// not believed, that it is, or that it stepped back.
  std::optional<std::string> take_news();

 private:
  /// How far the machine's clock is ahead of this one, when that was seen first.
  struct Step {
    base::Duration ahead{0};
    base::Clock::TimePoint since;
  };

  void follow();

  const base::Clock& clock_;
  const Options options_;
  const base::Clock::TimePoint begun_;
  std::mutex mutex_;
  bool resumed_ = false;
  /// This clock's time, and where the monotonic one was then.
  base::Clock::WallTime time_;
  base::Clock::TimePoint at_;
  /// How far a machine's clock that is believed is behind, and stays.
  base::Duration behind_{0};
  std::optional<Step> step_;
  std::optional<std::string> news_;
};

}  // namespace vigil::config
