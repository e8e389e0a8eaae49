#include "actors/alerts/alert_policy.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vigil::actors {
namespace {

constexpr double kHour = 3600;
/// By less than this, camera time and the wall clock go back together: it is a window that comes once more.
constexpr double kSame = 1;

}  // namespace

AlertPolicy::AlertPolicy(const config::RuleSettings& rule, const config::WindowSettings& window)
    : confirm_(rule.confirm),
      threshold_(rule.threshold),
      cooldown_(base::seconds(rule.cooldown)),
      max_per_hour_(static_cast<std::size_t>(rule.max_per_hour)),
      length_(window.length),
      // Twice the time that the row takes when nothing is lost.
      forget_after_(2 * rule.confirm.of * base::seconds(window.stride) + base::seconds(window.length)) {}

void AlertPolicy::resume(const Emission& told, base::Clock::WallTime at) {
  active_ = told;
  active_->phase = Phase::update;
  active_->end.reset();
  active_->reason = EndReason::over;
  ++active_->ordinal;
  row_.clear();
  emitted_.clear();
  held_.reset();
  last_counted_ = std::max(told.start, at);
  resumed_ = at;
  unseen_ = confirm_.of;
}

void AlertPolicy::look_whether_time_began_anew(const Observation& observation) {
  if (row_.empty()) return;
  const Observation& last = row_.back().observation;
  const double back = last.seconds - observation.seconds;
  const double passed =
      base::seconds(std::chrono::duration_cast<base::Duration>(observation.wall - last.wall));
  if (back <= 0 || std::abs(back + passed) < kSame) return;
  const double shift = back + std::max(0.0, passed);
  for (Seen& seen : row_) seen.observation.seconds -= shift;
  for (double& seconds : emitted_) seconds -= shift;
}

std::optional<Emission> AlertPolicy::observe(const Observation& observation) {
  if (resumed_) {
    // Events tell milliseconds. No further back than a window, so that a clock that was set back silences
    // nothing for longer.
    const auto since = std::chrono::floor<std::chrono::milliseconds>(observation.wall - *resumed_);
    if (since <= base::Duration(0) && -since < length_) return std::nullopt;
  }
  look_whether_time_began_anew(observation);
  if (const auto at = std::exchange(resumed_, std::nullopt)) {
    const auto ago = std::chrono::duration_cast<base::Duration>(observation.wall - *at);
    emitted_.push_back(observation.seconds - std::max(0.0, base::seconds(ago)));
  }
  while (!row_.empty() && observation.seconds - row_.front().observation.seconds > forget_after_)
    row_.pop_front();
  row_.push_back({observation, observation.score >= threshold_});
  if (std::cmp_greater(row_.size(), confirm_.of)) row_.pop_front();
  const auto counting = std::count_if(row_.begin(), row_.end(), [](const Seen& seen) { return seen.counts; });
  const std::optional<Held> wait = reason_to_wait(observation);
  held_.reset();

  if (!active_) {
    if (counting < confirm_.needed) return std::nullopt;
    held_ = wait;
    if (held_) return std::nullopt;
    Emission episode;
    episode.confirmations = static_cast<int>(counting);
    const auto first = std::find_if(row_.begin(), row_.end(), [](const Seen& seen) { return seen.counts; });
    episode.start = first->observation.wall;
    for (const Seen& seen : row_) {
      if (!seen.counts) continue;
      episode.score = std::max(episode.score, seen.observation.score);
      last_counted_ = seen.observation.wall;
    }
    active_ = episode;
    return emit(Phase::begin, observation.seconds);
  }
  if (row_.back().counts) {
    ++active_->confirmations;
    active_->score = std::max(active_->score, observation.score);
    last_counted_ = observation.wall;
  }
  if (unseen_ > 0) --unseen_;
  if (counting == 0 && unseen_ == 0) return close(EndReason::over);
  if (!row_.back().counts || wait) return std::nullopt;
  return emit(Phase::update, observation.seconds);
}

std::optional<Emission> AlertPolicy::close(EndReason reason) {
  if (!active_) return std::nullopt;
  Emission last = *std::exchange(active_, std::nullopt);
  unseen_ = 0;
  resumed_.reset();
  last.phase = Phase::end;
  last.reason = reason;
  last.end = std::max(last.start, last_counted_);
  return last;
}

std::optional<Held> AlertPolicy::reason_to_wait(const Observation& observation) {
  // The last emission stays: a cooldown may be longer than an hour.
  while (emitted_.size() > 1 && observation.seconds - emitted_.front() >= kHour) emitted_.pop_front();
  if (observation.snoozed) return Held::snoozed;
  if (emitted_.empty()) return std::nullopt;
  if (observation.seconds - emitted_.back() < cooldown_) return Held::cooldown;
  if (emitted_.size() >= max_per_hour_ && observation.seconds - emitted_.front() < kHour) {
    return Held::rate_cap;
  }
  return std::nullopt;
}

Emission AlertPolicy::emit(Phase phase, double seconds) {
  emitted_.push_back(seconds);
  return next(phase);
}

std::optional<Emission> AlertPolicy::amend() {
  if (!active_) return std::nullopt;
  return next(Phase::update);
}

Emission AlertPolicy::next(Phase phase) {
  active_->phase = phase;
  Emission emission = *active_;
  ++active_->ordinal;
  return emission;
}

}  // namespace vigil::actors
