// When the answers to one rule are worth telling: confirmation over windows, episodes, cooldown, rate cap.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "base/clock.h"
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

/// over: the rule does not hold any more; rule_changed: it was removed, or asks something else now;
/// camera_ended: the camera was stopped, removed or restarted, or its file is at its end.
enum class EndReason : std::uint8_t { over, rule_changed, camera_ended };

constexpr const char* name_of(EndReason reason) {
  switch (reason) {
    case EndReason::over:
      return "over";
    case EndReason::rule_changed:
      return "rule_changed";
    case EndReason::camera_ended:
      return "camera_ended";
  }
  return "?";
}

/// What a window said about a rule.
struct Observation {
  /// Probability of "Yes".
  double score = 0;
  /// End of the window in camera time, and on the wall.
  double seconds = 0;
  base::Clock::WallTime wall;
  /// Whether the rule is silent now.
  bool snoozed = false;
};

/// Why an episode that has begun is not told.
enum class Held : std::uint8_t { cooldown, rate_cap, snoozed };

constexpr const char* name_of(Held held) {
  switch (held) {
    case Held::cooldown:
      return "cooldown";
    case Held::rate_cap:
      return "rate_cap";
    case Held::snoozed:
      return "snoozed";
  }
  return "?";
}

/// What is to be told about an episode: the time in which a rule held.
struct Emission {
  Phase phase = Phase::begin;
  /// Counts this episode's emissions, from 0.
  std::uint64_t ordinal = 0;
  /// The highest of the episode so far.
  double score = 0;
  /// Windows of the episode that counted so far.
  int confirmations = 0;
  /// End of its first window that counted, and of its last one if it is over: never before the start,
  /// wherever the wall clock was set meanwhile.
  base::Clock::WallTime start;
  std::optional<base::Clock::WallTime> end;
  EndReason reason = EndReason::over;
};

/// One rule of one camera. Time is the camera's, so that a file gives the same alerts at any pace, and no
/// jump of the wall clock shortens or lengthens a silence.
///
/// An episode begins when `needed` of the last `of` answered windows reach the threshold, and ends when none
/// of the last `of` does. `new` is told when it has begun and neither a snooze, a cooldown nor the rate cap
/// holds it back; `update` when it still holds after a cooldown, under the same conditions; `end` always, of
/// what was told. Cooldown and rate cap count from the emission of `new` or `update`: what was held back uses
/// none of them up. Windows that were lost under overload neither count nor break a row, unless they left a
/// gap that no row can bridge.
class AlertPolicy {
 public:
  AlertPolicy(const config::RuleSettings& rule, const config::WindowSettings& window);

  /// Windows have to come in the order of time. One whose time is before that of the last one is of a camera
  /// whose time has begun anew, as where nobody knows any more since when there is such a camera: what was
  /// told and seen before was then as long ago as the wall clock says.
  std::optional<Emission> observe(const Observation& observation);

  /// The episode as it stands, to be told once more because something else than its windows is news: an
  /// `update` that counts neither for the cooldown nor for the rate cap. Nothing if there is no episode.
  std::optional<Emission> amend();

  /// Goes on with an episode that another policy of the same rule has begun: `told` is what it told last,
  /// with its ordinal, `at` when that was, by the camera's wall clock. The cooldown counts from there,
  /// whatever the wall clock says of it. The windows before are not known, so that it does not end before as
  /// many as a row has were seen here; of those that come once more, as where the camera's stream moved at
  /// the same time, none that ends by then counts.
  void resume(const Emission& told, base::Clock::WallTime at);

  /// Ends the episode, if there is one.
  std::optional<Emission> close(EndReason reason);

  /// Whether an episode was told and has not ended.
  bool active() const { return active_.has_value(); }

  /// Why the last window did not begin to tell an episode that it confirmed; nothing if it confirmed none, or
  /// told it.
  std::optional<Held> held() const { return held_; }

 private:
  struct Seen {
    Observation observation;
    bool counts = false;
  };

  void look_whether_time_began_anew(const Observation& observation);
  std::optional<Held> reason_to_wait(const Observation& observation);
  Emission emit(Phase phase, double seconds);
  Emission next(Phase phase);

  config::Confirmation confirm_;
  double threshold_;
  double cooldown_;
  std::size_t max_per_hour_;
  base::Duration length_;
  double forget_after_;
  std::deque<Seen> row_;
  std::optional<Emission> active_;
  std::optional<Held> held_;
  base::Clock::WallTime last_counted_;
  /// When `new` and `update` were emitted within the last hour, in camera time.
  std::deque<double> emitted_;
  /// When the resumed episode was told last, until it is known what time of the camera that was.
  std::optional<base::Clock::WallTime> resumed_;
  /// Windows of the row that another policy has seen.
  int unseen_ = 0;
};

}  // namespace vigil::actors
