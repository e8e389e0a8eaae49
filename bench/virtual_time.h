// Time that a simulation says, and threads that work in it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/loop.h"

namespace vigil::bench {

using Nanoseconds = std::chrono::nanoseconds;

/// The one queue of a simulation, in the order of its times; pieces of one time run in the order in which
/// they were put there. Not thread-safe.
class VirtualTime final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(now_); }
  WallTime wall() const override {
    return WallTime(std::chrono::seconds(1'790'000'000) +
                    std::chrono::duration_cast<WallTime::duration>(now_));
  }
  /// Since the beginning.
  Nanoseconds elapsed() const { return now_; }

  void at(Nanoseconds after, std::function<void()> piece) {
    pieces_.push_back({now_ + std::max(after, Nanoseconds(0)), ++number_, std::move(piece)});
    std::ranges::push_heap(pieces_, later);
  }
  /// Runs what is due until then, and lets the time be that.
  void advance(Nanoseconds time) {
    const Nanoseconds until = now_ + time;
    while (!pieces_.empty() && pieces_.front().when <= until) {
      std::ranges::pop_heap(pieces_, later);
      Piece piece = std::move(pieces_.back());
      pieces_.pop_back();
      now_ = std::max(now_, piece.when);
      piece.run();
    }
    now_ = until;
  }

 private:
  struct Piece {
    Nanoseconds when;
    std::uint64_t number;
    std::function<void()> run;
  };
  static bool later(const Piece& a, const Piece& b) {
    return std::pair(a.when, a.number) > std::pair(b.when, b.number);
  }

  Nanoseconds now_{0};
  std::uint64_t number_ = 0;
  std::vector<Piece> pieces_;
};

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
