// What a thread tells another one.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

namespace vigil::cluster::testing {

template <class T>
class Letter {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    value_.emplace(std::move(value));
    came_.notify_all();
  }
  /// Nothing if none comes.
  std::optional<T> take(std::chrono::seconds patience = std::chrono::seconds(10)) {
    std::unique_lock lock(mutex_);
    came_.wait_for(lock, patience, [this] { return value_.has_value(); });
    return std::exchange(value_, std::nullopt);
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::optional<T> value_;
};

}  // namespace vigil::cluster::testing
