// Seconds that a model tells, as the time of day that they mean.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/kv/history/page_info.h"

namespace vigil::memory {

/// A patch as it was shown to the model.
struct ShownPatch {
  /// Seconds from the window's first frame to its own, as the model was told.
  double second = 0;
  history::WallRange wall;
};

/// The wall time, in nanoseconds, that the model means by this second of a window; at most the ends of it.
/// The patches are in the order of time; at least one.
std::int64_t wall_of_second(double second, std::span<const ShownPatch> patches);

/// The text with "second 12.5", in small letters or not, replaced by that time in RFC 3339 (UTC, whole
/// seconds).
std::string in_wall_time(std::string_view text, std::span<const ShownPatch> patches);

}  // namespace vigil::memory
