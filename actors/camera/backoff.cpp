#include "actors/camera/backoff.h"

#include <algorithm>

namespace vigil::actors {

Backoff::Backoff(config::ReconnectSettings settings, std::uint64_t seed)
    : settings_(settings), ceiling_(settings.min), random_(seed) {
  // The first numbers of seeds that lie beside each other do so as well.
  random_.discard(4);
}

base::Duration Backoff::next() {
  const base::Duration ceiling = ceiling_;
  ceiling_ = std::min(settings_.max, ceiling_ * 2);
  std::uniform_int_distribution<std::int64_t> jitter(ceiling.count() / 2, ceiling.count());
  return base::Duration(jitter(random_));
}

base::Duration Backoff::longest() {
  ceiling_ = settings_.max;
  return next();
}

void Backoff::reset() {
  ceiling_ = settings_.min;
}

}  // namespace vigil::actors
