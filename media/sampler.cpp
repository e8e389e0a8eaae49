#include "media/sampler.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace vigil::media {

Sampler::Sampler(double fps, double from, std::optional<double> to)
    : fps_(fps), from_(from), to_(to), tolerance_(std::isinf(fps) ? 0.0 : std::min(0.002, 0.1 / fps)) {
  if (!(fps > 0)) throw std::invalid_argument("the sampling rate must be above 0");
  if (!(from >= 0) || std::isinf(from))
    throw std::invalid_argument("the start of the range must be 0 or later");
  if (to && !(*to > from)) throw std::invalid_argument("the end of the range must be after its start");
}

double Sampler::first_target_at_or_after(double seconds) const {
  return from_ + std::ceil(std::max(0.0, (seconds - from_) * fps_) - 1e-9) / fps_;
}

bool Sampler::wants(double begin, double end) const {
  if (std::isinf(fps_)) return true;
  return first_target_at_or_after(begin - tolerance_) < end - tolerance_;
}

bool Sampler::take(double begin, double end) {
  const bool taken = !started_ || wants(begin, end);
  started_ = true;
  return taken;
}

}  // namespace vigil::media
