#include "actors/camera/audit_clock.h"

#include <cmath>

#include "actors/messages/pruned_less.h"
#include "base/duration.h"
#include "engine/prune/pruning_policy.h"

namespace vigil::actors {

AuditClock::AuditClock(double length, double stride, std::int64_t every, double phase)
    : length_(length),
      stride_(stride),
      every_(every),
      offset_(static_cast<std::int64_t>(phase * static_cast<double>(every))) {}

std::optional<double> AuditClock::window_at(double seconds, double lead) {
  if (every_ <= 0) return std::nullopt;
  if (seconds >= ends_) {
    // The first of them that is still to begin. Its number is how many strides its end is from 0.
    const auto next = static_cast<std::int64_t>(std::ceil((seconds + length_) / stride_));
    const std::int64_t behind = ((next - offset_) % every_ + every_) % every_;
    ends_ = stride_ * static_cast<double>(behind == 0 ? next : next + every_ - behind);
    begins_ = ends_ - length_;
  }
  if (seconds < begins_ - lead) return std::nullopt;
  return ends_;
}

AuditClock audits_of(const config::CameraSettings& camera) {
  const config::PruningSettings& pruning = camera.stream.pruning;
  const config::WindowSettings& window = camera.stream.window;
  if (computes_all(pruning) || window.memory > base::Duration{}) return {};
  return {base::seconds(window.length), base::seconds(window.stride), pruning.audit,
          prune::anchor_phase(camera.name)};
}

}  // namespace vigil::actors
