#include "actors/alerts/alert_policy.h"

#include <algorithm>
#include <utility>

namespace vigil::actors {

AlertPolicy::AlertPolicy(const config::RuleSettings& rule, const config::WindowSettings& window)
    : confirm_(rule.confirm),
      threshold_(rule.threshold),
      cooldown_(config::seconds(rule.cooldown)),
      // Twice the time that the row takes when nothing is lost.
      forget_after_(2 * rule.confirm.of * config::seconds(window.stride) + config::seconds(window.length)) {}

std::optional<Emission> AlertPolicy::observe(const Observation& observation) {
  while (!row_.empty() && observation.seconds - row_.front().observation.seconds > forget_after_)
    row_.pop_front();
  row_.push_back({observation, observation.score >= threshold_});
  if (std::cmp_greater(row_.size(), confirm_.of)) row_.pop_front();
  const auto counting = std::count_if(row_.begin(), row_.end(), [](const Seen& seen) { return seen.counts; });
  const bool cooled = !emitted_ || observation.seconds - *emitted_ >= cooldown_;

  if (!active_) {
    if (counting < confirm_.needed || !cooled) return std::nullopt;
    Emission episode;
    episode.episode = episodes_++;
    episode.confirmations = static_cast<int>(counting);
    const auto first = std::find_if(row_.begin(), row_.end(), [](const Seen& seen) { return seen.counts; });
    episode.start = first->observation.wall;
    for (const Seen& seen : row_) {
      if (!seen.counts) continue;
      episode.score = std::max(episode.score, seen.observation.score);
      last_counted_ = seen.observation.wall;
    }
    active_ = episode;
    emitted_ = observation.seconds;
    return emit(Phase::begin);
  }
  if (row_.back().counts) {
    ++active_->confirmations;
    active_->score = std::max(active_->score, observation.score);
    last_counted_ = observation.wall;
  }
  if (counting == 0) return close();
  if (!row_.back().counts || !cooled) return std::nullopt;
  emitted_ = observation.seconds;
  return emit(Phase::update);
}

std::optional<Emission> AlertPolicy::close() {
  if (!active_) return std::nullopt;
  active_->end = last_counted_;
  const Emission last = emit(Phase::end);
  active_.reset();
  return last;
}

Emission AlertPolicy::emit(Phase phase) {
  active_->phase = phase;
  Emission emission = *active_;
  ++active_->ordinal;
  return emission;
}

}  // namespace vigil::actors
