// The one who decides what a device does next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/clock.h"

namespace vigil::run {

/// When a piece is done.
struct Turn {
  base::Clock::TimePoint now{};
  /// What is due later had better wait: by then another source's piece is.
  base::Clock::TimePoint until = base::Clock::TimePoint::max();
};

/// Where pieces of work come from: patches that wait for the vision tower, windows and texts that wait for
/// the language model. Each piece is short, so that what is more urgent comes in between. Not thread-safe.
class WorkSource {
 public:
  virtual ~WorkSource() = default;

  /// By when its next piece should be done; nothing if there is none.
  virtual std::optional<base::Clock::TimePoint> due() const = 0;

  /// Until when that piece had better grow, while other sources have work: a pass of little is dear. Nothing:
  /// it is as good now as later.
  virtual std::optional<base::Clock::TimePoint> gathers_until() const { return std::nullopt; }

  /// Does that piece. Throws DeviceLost.
  virtual void work(const Turn& turn) = 0;
};

/// Runs the pieces of all sources of a device, one after the other, the most urgent first; of equally urgent
/// ones those of the source that was served least recently. One that gathers comes after all others. Not
/// thread-safe: whoever calls it owns the device and its streams.
class Executor {
 public:
  /// The sources have to outlive it.
  Executor(const base::Clock& clock, const std::vector<WorkSource*>& sources);

  /// Whose piece is next; null if there is none.
  WorkSource* next() const;

  /// Runs the next piece of this source, which is one of them and has one. Throws DeviceLost, after which
  /// nothing works here any more.
  void run(WorkSource& source);
  /// Runs the next piece. False if there is none. Throws as `run` does.
  bool run_one();

 private:
  struct Entry {
    WorkSource* source;
    /// The turn in which it was served last.
    std::uint64_t served = 0;
  };

  bool gathers(const WorkSource& source) const;

  const base::Clock& clock_;
  std::vector<Entry> sources_;
  std::uint64_t turn_ = 0;
};

}  // namespace vigil::run
