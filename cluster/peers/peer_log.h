// What is said of connections between nodes.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "cluster/sockets/pace.h"

namespace vigil::cluster {

/// Lines of the log, not more than some a minute, since strangers can bring them about. Thread-safe.
class PeerLog {
 public:
  /// `log` may be empty.
  explicit PeerLog(std::function<void(const std::string&)> log) : log_(std::move(log)) {}

  void say(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (!log_ || !lines_.has_one(std::chrono::steady_clock::now())) return;
    lines_.take();
    log_(line);
  }

 private:
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  Pace lines_{20, 0.2, std::chrono::steady_clock::now()};
};

}  // namespace vigil::cluster
