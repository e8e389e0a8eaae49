// How those who compute for long say that they are alive.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "actors/status/status_board.h"
#include "base/duration.h"

namespace vigil::actors {

/// A pass that takes many times as long as the slowest one so far, or in proportion where none was so large,
/// is taken for hung. Before the first pass nobody knows how fast the machine is: it may take as long as any.
/// Not thread-safe.
class WorkPatience {
 public:
  static constexpr base::Duration kLeast = std::chrono::seconds(60);
  static constexpr base::Duration kMost = std::chrono::minutes(10);
  static constexpr double kTimes = 20;

  /// For a pass over so many of what it computes (patches, rows).
  base::Duration of(std::size_t size) const {
    if (slowest_ <= 0) return kMost;
    const double larger = static_cast<double>(size) / static_cast<double>(largest_);
    const double seconds = kTimes * slowest_ * std::max(1.0, larger);
    return std::clamp(std::chrono::milliseconds(static_cast<std::int64_t>(std::min(seconds, 1e6) * 1000)),
                      kLeast, kMost);
  }

  /// A pass over so many took so long.
  void took(double seconds, std::size_t size) {
    slowest_ = std::max(slowest_, seconds);
    largest_ = std::max(largest_, size);
  }

 private:
  /// Seconds of the slowest pass, whatever its size: a small one costs more for each than a large one.
  double slowest_ = 0;
  /// Of all passes.
  std::size_t largest_ = 1;
};

/// Between two passes, who computes says every so often that it is alive, and may be silent for so long.
constexpr base::Duration kBeatTick = std::chrono::seconds(1);
constexpr base::Duration kIdlePatience = std::chrono::seconds(30);

/// The beats of one who computes. Not thread-safe.
class WorkBeat {
 public:
  /// What a pass is over: patches through the vision tower, rows through the language model.
  enum class Work : std::uint8_t { patches, rows };

  WorkBeat(StatusBoard& board, std::string name) : board_(board), name_(std::move(name)) { idle(); }

  /// It waits for work.
  void idle() { board_.beat(name_, kIdlePatience); }
  /// A pass over so many begins.
  void begins(Work work, std::size_t size) { board_.beat(name_, patience(work).of(size)); }
  /// It ended.
  void took(Work work, double seconds, std::size_t size) {
    patience(work).took(seconds, size);
    idle();
  }

 private:
  StatusBoard& board_;
  const std::string name_;
  WorkPatience& patience(Work work) { return patiences_[static_cast<std::size_t>(work)]; }

  std::array<WorkPatience, 2> patiences_;
};

}  // namespace vigil::actors
