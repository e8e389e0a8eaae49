// SIGTERM, SIGINT and SIGHUP as calls in a thread of their own.
#pragma once

#include <functional>
#include <thread>

namespace vigil::services {

/// Ignores SIGPIPE and SIGXFSZ: a log or a socket whose reader has gone, and a file that may grow no more,
/// are errors of a write. Blocks the signals in the calling thread and those that it starts later, and calls
/// `on_end` for each SIGTERM and SIGINT that arrives, `on_hangup` for each SIGHUP. Make it before any other
/// thread.
class Signals {
 public:
  /// Blocks them for now: those that come before one is made wait for it, also across an `exec`. Whether they
  /// were blocked before, so that threads that libraries started ahead of `main` do not take them, either.
  static bool block();

  Signals(std::function<void()> on_end, std::function<void()> on_hangup);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  int signals_;
  int wake_;
  std::thread thread_;
};

}  // namespace vigil::services
