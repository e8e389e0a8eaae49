// Which of a camera's windows are audited.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>

#include "config/settings.h"

namespace vigil::actors {

/// One window in so many, at a place of the camera's own, so that a fleet's are spread; never two that
/// overlap. Each is chosen before it begins: what is sent of it is known then to be for the audit, too. Not
/// thread-safe.
class AuditClock {
 public:
  /// None is.
  AuditClock() = default;
  /// Windows of `length` seconds, of which one ends at each multiple of `stride`. `every`: 0 for none.
  /// `phase`: where among them, from 0 to below 1.
  AuditClock(double length, double stride, std::int64_t every, double phase);

  /// When the audited window ends of which a patch of this time may be the first, or any: those that begin up
  /// to `lead` seconds before the window may turn out to be its first. Nothing: it is of none. Times never
  /// decrease.
  std::optional<double> window_at(double seconds, double lead);

 private:
  double length_ = 0, stride_ = 0;
  std::int64_t every_ = 0, offset_ = 0;
  double begins_ = 0, ends_ = -std::numeric_limits<double>::infinity();
};

/// That of a camera's settings. Where all of every window is computed there is nothing to audit; and where
/// windows have a memory nothing to compare with: no whole computation has one.
AuditClock audits_of(const config::CameraSettings& camera);

}  // namespace vigil::actors
