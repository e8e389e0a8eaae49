// Threads, times and a network of which a test says when anything happens.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/loop.h"

namespace vigil::cluster::testing {

/// The one queue of a simulation, in the order of its times; pieces of one time run in the order in which
/// they were put there. Not thread-safe.
class VirtualTime final : public base::Clock {
 public:
  TimePoint now() const override { return TimePoint(now_); }
  WallTime wall() const override { return WallTime(std::chrono::seconds(1'790'000'000) + now_); }

  void at(base::Duration after, std::function<void()> piece) {
    pieces_.emplace(std::pair(now_ + after, ++number_), std::move(piece));
  }
  /// Runs what is due until then, and lets the time be that.
  void advance(base::Duration time) {
    const base::Duration until = now_ + time;
    while (!pieces_.empty() && pieces_.begin()->first.first <= until) {
      auto node = pieces_.extract(pieces_.begin());
      now_ = std::max(now_, node.key().first);
      node.mapped()();
    }
    now_ = until;
  }

 private:
  base::Duration now_{0};
  std::uint64_t number_ = 0;
  std::map<std::pair<base::Duration, std::uint64_t>, std::function<void()>> pieces_;
};

/// A thread of a simulated node, which ends with the object.
class VirtualLoop final : public base::Loop {
 public:
  explicit VirtualLoop(VirtualTime& time) : time_(time) {}

  void post(std::function<void()> piece) override { after(base::Duration(0), std::move(piece)); }
  void after(base::Duration delay, std::function<void()> piece) override {
    time_.at(delay, [alive = std::weak_ptr(alive_), piece = std::move(piece)] {
      if (!alive.expired()) piece();
    });
  }

 private:
  VirtualTime& time_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace vigil::cluster::testing
