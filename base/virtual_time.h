// Time that a simulation says.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace vigil::base {

/// The one queue of a simulation, in the order of its times; pieces of one time run in the order in which
/// they were put there. Not thread-safe.
class VirtualTime final : public Clock {
 public:
  TimePoint now() const override { return TimePoint(now_); }
  WallTime wall() const override {
    return WallTime(std::chrono::seconds(1'790'000'000) +
                    std::chrono::duration_cast<WallTime::duration>(now_));
  }
  /// Since the beginning.
  std::chrono::nanoseconds elapsed() const { return now_; }

  void at(std::chrono::nanoseconds after, std::function<void()> piece) {
    pieces_.push_back({now_ + std::max(after, std::chrono::nanoseconds(0)), ++number_, std::move(piece)});
    std::ranges::push_heap(pieces_, later);
  }
  /// Runs what is due until then, and lets the time be that.
  void advance(std::chrono::nanoseconds time) {
    const std::chrono::nanoseconds until = now_ + time;
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
    std::chrono::nanoseconds when;
    std::uint64_t number;
    std::function<void()> run;
  };
  static bool later(const Piece& a, const Piece& b) {
    return std::pair(a.when, a.number) > std::pair(b.when, b.number);
  }

  std::chrono::nanoseconds now_{0};
  std::uint64_t number_ = 0;
  std::vector<Piece> pieces_;
};

}  // namespace vigil::base
