// Threads that work in a time that a simulation says.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "base/loop.h"
#include "base/virtual_time.h"

namespace vigil::bench {

using base::VirtualTime;
using Nanoseconds = std::chrono::nanoseconds;

/// A thread of a simulated node, which ends with the object. What its pieces cost (`spend`) holds up those
/// behind them.
class VirtualThread final : public base::Loop {
 public:
  explicit VirtualThread(VirtualTime& time) : time_(time) {}

  void post(std::function<void()> piece) override {
    pieces_.push_back({time_.elapsed(), std::move(piece)});
    wake();
  }
  void after(base::Duration delay, std::function<void()> piece) override {
    time_.at(delay, [alive = std::weak_ptr(alive_), this, piece = std::move(piece)]() mutable {
      if (!alive.expired()) post(std::move(piece));
    });
  }

  /// Of the piece that runs, or of what comes next.
  void spend(Nanoseconds cost) {
    busy_until_ = std::max(busy_until_, time_.elapsed()) + cost;
    spent_ += cost;
  }
  Nanoseconds spent() const { return spent_; }
  /// The longest that a piece has waited since this was asked last.
  Nanoseconds take_longest_wait() { return std::exchange(longest_wait_, Nanoseconds(0)); }

 private:
  struct Piece {
    Nanoseconds since;
    std::function<void()> run;
  };

  void wake() {
    if (std::exchange(awake_, true)) return;
    time_.at(busy_until_ - time_.elapsed(), [alive = std::weak_ptr(alive_), this] {
      if (!alive.expired()) work(alive);
    });
  }
  void work(const std::weak_ptr<int>& alive) {
    while (!pieces_.empty() && busy_until_ <= time_.elapsed()) {
      const Piece piece = std::move(pieces_.front());
      pieces_.pop_front();
      longest_wait_ = std::max(longest_wait_, time_.elapsed() - piece.since);
      piece.run();
      if (alive.expired()) return;
    }
    awake_ = false;
    if (!pieces_.empty()) wake();
  }

  VirtualTime& time_;
  std::deque<Piece> pieces_;
  bool awake_ = false;
  Nanoseconds busy_until_{0};
  Nanoseconds spent_{0};
  Nanoseconds longest_wait_{0};
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::bench
