#include "config/running/retention_clock.h"

#include <utility>

namespace vigil::config {
namespace {

/// A process may rest so long without anybody having to hear of it.
constexpr std::chrono::hours kUnremarkableRest{24};

std::string seconds_text(base::Duration time) {
  return base::format_duration(std::chrono::duration_cast<std::chrono::seconds>(std::chrono::abs(time)));
}

}  // namespace

RetentionClock::RetentionClock(const base::Clock& clock, Options options)
    : clock_(clock), options_(options), begun_(clock.now()), time_(clock.wall()), at_(begun_) {}

void RetentionClock::resume(base::Clock::WallTime last) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(resumed_, true)) return;
  at_ = clock_.now();
  time_ = last + (at_ - begun_);
  behind_ = base::Duration(0);
  step_.reset();
  const auto rest = std::chrono::duration_cast<base::Duration>(clock_.wall() - time_);
  follow();
  if (rest >= base::Duration(0) && rest <= kUnremarkableRest) news_.reset();
}

base::Clock::WallTime RetentionClock::now() {
  const std::lock_guard lock(mutex_);
  follow();
  return time_;
}

std::optional<std::string> RetentionClock::take_news() {
  const std::lock_guard lock(mutex_);
  follow();
  return std::exchange(news_, std::nullopt);
}

void RetentionClock::follow() {
  const base::Clock::TimePoint now = clock_.now();
  time_ += now - at_;
  at_ = now;
  const auto ahead = std::chrono::duration_cast<base::Duration>(clock_.wall() - time_);
  const base::Duration deviation = ahead + behind_;
  const bool small = std::chrono::abs(deviation) <= options_.tolerance;
  if (!small && (!step_ || std::chrono::abs(deviation - step_->ahead) > options_.tolerance)) {
    step_ = Step{deviation, now};
    news_ = "the machine's clock is " + seconds_text(deviation) +
            (deviation > base::Duration(0) ? " ahead" : " behind") +
            "; nothing that is kept grows older by that unless it stays so for " +
            base::format_duration(options_.patience);
  }
  if (!small && now - step_->since < options_.patience) return;
  if (step_) {
    news_ = small ? "the machine's clock is back at the time that is known to have passed"
                  : "the machine's clock has been " + seconds_text(deviation) +
                        (deviation > base::Duration(0) ? " ahead" : " behind") + " for " +
                        base::format_duration(options_.patience) + " and is believed";
  }
  step_.reset();
  if (ahead > base::Duration(0)) time_ += ahead;
  behind_ = ahead > base::Duration(0) ? base::Duration(0) : -ahead;
}

}  // namespace vigil::config
