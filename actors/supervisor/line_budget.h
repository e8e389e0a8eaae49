// How many lines of a log many cameras may fill together.
#pragma once

#include <cstddef>
#include <utility>

#include "base/clock.h"

namespace vigil::actors {

/// So many lines in any span that begins with the first of them; what is beyond is counted. Not thread-safe.
class LineBudget {
 public:
  using TimePoint = base::Clock::TimePoint;

  LineBudget(std::size_t lines, base::Duration span) : lines_(lines), span_(span) {}

  /// Whether a line may be written; else it is missed.
  bool take(TimePoint now) {
    if (now >= until_ && missed_ == 0) {
      until_ = now + span_;
      taken_ = 0;
    }
    if (taken_ < lines_) return ++taken_ > 0;
    ++missed_;
    return false;
  }

  /// How many lines were missed, once, when their span is over.
  std::size_t take_missed(TimePoint now) {
    if (now < until_) return 0;
    return std::exchange(missed_, 0);
  }

 private:
  std::size_t lines_;
  base::Duration span_;
  TimePoint until_{};
  std::size_t taken_ = 0;
  std::size_t missed_ = 0;
};

}  // namespace vigil::actors
