#include "cluster/process/end_requests.h"

#include <chrono>

namespace vigil::cluster {
namespace {

/// Nobody who waits for an end loses patience sooner.
constexpr std::chrono::seconds kSame{1};

}  // namespace

EndRequests::Meaning EndRequests::take() {
  const base::Clock::TimePoint now = clock_.now();
  if (!first_) {
    first_ = now;
    return Meaning::finish;
  }
  return now - *first_ < kSame ? Meaning::nothing : Meaning::quit;
}

}  // namespace vigil::cluster
