// When the answers to one rule are worth telling: confirmation over windows, episodes, cooldown.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "config/clock.h"
#include "config/settings.h"

namespace vigil::actors {

/// begin: it has started (`new` on the wire); update: it still holds after another cooldown; end: it is over.
enum class Phase : std::uint8_t { begin, update, end };

constexpr const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::begin:
      return "new";
    case Phase::update:
      return "update";
    case Phase::end:
      return "end";
  }
  return "?";
}

/// What a window said about a rule.
struct Observation {
  /// Probability of "Yes".
  double score = 0;
  /// End of the window in camera time, and on the wall.
  double seconds = 0;
  config::Clock::WallTime wall;
};

/// What is to be told about an episode: the time in which a rule held.
struct Emission {
  Phase phase = Phase::begin;
  /// Counts this rule's episodes since the policy was made, and this episode's emissions, from 0.
  std::uint64_t episode = 0;
  std::uint64_t ordinal = 0;
  /// The highest of the episode so far.
  double score = 0;
  /// Windows of the episode that counted so far.
  int confirmations = 0;
  /// End of its first window that counted, and of its last one if it is over.
  config::Clock::WallTime start;
  std::optional<config::Clock::WallTime> end;
};

/// One rule of one camera. Time is the camera's, so that a file gives the same alerts at any pace.
///
/// An episode begins when `needed` of the last `of` answered windows reach the threshold and no cooldown
/// runs, and ends when none of the last `of` does. The cooldown runs from the emission of `new` or `update`:
/// what was held back uses none of it up. Windows that were lost under overload neither count nor break a
/// row, unless they left a gap that no row can bridge.
class AlertPolicy {
 public:
  AlertPolicy(const config::RuleSettings& rule, const config::WindowSettings& window);

  /// Windows have to come in the order of time.
  std::optional<Emission> observe(const Observation& observation);

  /// The camera has ended: so has the episode, if there is one.
  std::optional<Emission> close();

  bool active() const { return active_.has_value(); }

 private:
  struct Seen {
    Observation observation;
    bool counts = false;
  };

  Emission emit(Phase phase);

  config::Confirmation confirm_;
  double threshold_;
  double cooldown_;
  double forget_after_;
  std::deque<Seen> row_;
  std::uint64_t episodes_ = 0;
  std::optional<Emission> active_;
  config::Clock::WallTime last_counted_;
  std::optional<double> emitted_;
};

}  // namespace vigil::actors
