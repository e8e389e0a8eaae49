// SIGTERM and SIGINT as calls in a thread of their own.
#pragma once

#include <functional>
#include <thread>

namespace vigil::services {

/// Blocks both signals in the calling thread and those that it starts later, and calls `on_signal` with 1, 2,
/// … for each that arrives. Make it before any other thread.
class Signals {
 public:
  explicit Signals(std::function<void(int count)> on_signal);
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  int signals_;
  int wake_;
  std::thread thread_;
};

}  // namespace vigil::services
