#include "media/timeline.h"

#include <algorithm>

namespace vigil::media {

Timeline::Timeline(double largest_gap, std::optional<double> origin)
    : largest_gap_(largest_gap), origin_(origin) {}

double Timeline::accept(double timestamp, double duration) {
  if (!origin_) origin_ = timestamp - (started_ ? last_seconds_ + last_duration_ : 0);
  // Never before the last frame, nor before the first; equal times stay equal.
  last_seconds_ = std::max(timestamp - *origin_, started_ ? last_seconds_ : 0.0);
  last_timestamp_ = timestamp;
  last_duration_ = duration;
  started_ = true;
  return last_seconds_;
}

// For a frame without a timestamp, or with one that is not believed: it follows the last one.
double Timeline::replace(double duration) {
  if (started_) {
    last_seconds_ += last_duration_;
    if (last_timestamp_) *last_timestamp_ += last_duration_;
  }
  last_duration_ = duration;
  started_ = true;
  return last_seconds_;
}

double Timeline::settle_lasting(const Doubt& doubt) {
  const double step = doubt.timestamp - *last_timestamp_;
  if (step < 0 || step > largest_gap_) origin_ = doubt.timestamp - (last_seconds_ + last_duration_);
  return accept(doubt.timestamp, doubt.duration);
}

std::vector<double> Timeline::push(std::optional<double> timestamp, double duration) {
  std::vector<double> certain;
  if (doubt_) {
    const Doubt doubt = *doubt_;
    doubt_.reset();
    ++jumps_;
    const bool lasting = !timestamp || continues(doubt.timestamp, *timestamp);
    const bool back_again = timestamp && continues(*last_timestamp_, *timestamp);
    // Both can hold after a short step back: then the frame's own clock is the better witness.
    certain.push_back(lasting && !(back_again && doubt.timestamp < *last_timestamp_)
                          ? settle_lasting(doubt)
                          : replace(doubt.duration));
  }
  if (!timestamp) {
    certain.push_back(replace(duration));
  } else if (!last_timestamp_ || continues(*last_timestamp_, *timestamp)) {
    certain.push_back(accept(*timestamp, duration));
  } else {
    doubt_ = Doubt{*timestamp, duration};
  }
  return certain;
}

std::vector<double> Timeline::finish() {
  if (!doubt_) return {};
  const double duration = doubt_->duration;
  doubt_.reset();
  ++jumps_;
  return {replace(duration)};
}

}  // namespace vigil::media
