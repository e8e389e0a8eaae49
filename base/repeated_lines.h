// Lines of a log that would say the same of the same thing over and over.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"

namespace vigil::base {

/// A line a minute of each is enough, which counts those that were left out. `Of`: what lines are about, such
/// as a camera; something is kept of each until it is forgotten. Not thread-safe.
template <class Of>
class RepeatedLines {
 public:
  static constexpr std::chrono::minutes kSpan{1};

  /// What is to be logged of `line`; nothing if there was one about the same less than `kSpan` ago.
  std::optional<std::string> hear(const Of& of, std::string line, Clock::TimePoint now) {
    const auto [entry, is_first] = told_.try_emplace(of);
    Told& told = entry->second;
    if (!is_first && now - told.at < kSpan) {
      ++told.missed;
      return std::nullopt;
    }
    told.at = now;
    if (const std::uint64_t missed = std::exchange(told.missed, 0); missed > 0)
      line += " (and " + std::to_string(missed) + (missed == 1 ? " time" : " times") +
              " since this was last said)";
    return line;
  }
  /// It has gone: a line about it would be the first.
  void forget(const Of& of) { told_.erase(of); }

 private:
  struct Told {
    Clock::TimePoint at;
    /// Since then.
    std::uint64_t missed = 0;
  };
  std::map<Of, Told> told_;
};

}  // namespace vigil::base
