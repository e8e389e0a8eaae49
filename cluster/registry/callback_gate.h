// Calls what was given to be called, until nobody wants it any more.
#pragma once

#include <mutex>

namespace vigil::cluster {

/// One call at a time. Thread-safe.
class CallbackGate {
 public:
  template <class Call>
  void run(Call&& call) {
    const std::lock_guard lock(mutex_);
    if (open_) call();
  }

  /// Afterwards nothing is called any more; a call that is under way on another thread is waited for.
  void close() {
    const std::lock_guard lock(mutex_);
    open_ = false;
  }

 private:
  // What is called may close it.
  std::recursive_mutex mutex_;
  bool open_ = true;
};

}  // namespace vigil::cluster
