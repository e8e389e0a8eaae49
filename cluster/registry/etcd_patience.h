// How long a server of etcd may take to answer.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "base/duration.h"

namespace vigil::cluster {

inline base::Duration elapsed(std::chrono::steady_clock::time_point since) {
  return std::chrono::round<base::Duration>(std::chrono::steady_clock::now() - since);
}

/// Short at first, so that the next server is asked soon when one is silent. Each attempt that was silence
/// alone gives the next more time: servers that are merely slow would never be reached otherwise. Not
/// thread-safe.
class EtcdPatience {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  /// `time_limit`: of a call with all its attempts.
  EtcdPatience(base::Duration time_limit, std::size_t endpoints);

  /// For a connection and its first answer; twice the limit of a call at most.
  base::Duration attempt() const { return attempt_; }
  /// For an answer that another server may give, too, on a connection that stands; never above the limit of
  /// a call.
  base::Duration call() const;

  /// Whether an attempt that came to nothing after this time was silence, and no reason that another would
  /// have again.
  bool is_silence(base::Duration took) const { return took >= attempt_ * 9 / 10; }

  /// A server gave no answer in its time.
  void silent();
  /// The first answer of a connection took so long: the next connections may take twice that. Says how slow
  /// it was, if the usual time was too short for it; otherwise empty.
  std::string answered(base::Duration took);
  /// A call on a connection that stands was answered: one that is quick takes back what slow ones were given.
  void call_answered(base::Duration took);

  /// Called when each server was tried in vain: from time to time, a line that says how long they had.
  std::optional<std::string> complaint(TimePoint now);

 private:
  const base::Duration time_limit_;
  const base::Duration first_;
  base::Duration attempt_;
  /// What the last one that was silent had; 0: none was since the last answer.
  base::Duration had_{0};
  std::optional<TimePoint> complained_;
};

}  // namespace vigil::cluster
