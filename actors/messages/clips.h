// Who is asked which clip shows what a camera saw. Plain, and free of CAF.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/kv/history/page_info.h"
#include "engine/kv/history/page_key.h"

namespace vigil::actors {

/// A clip that is kept, and its still: paths as events have them (`Evidence`).
struct ShownClip {
  std::string clip;
  /// Empty: it has no still.
  std::string thumb;
  /// Where it begins, and how much of what was asked about it shows: nanoseconds, the latter above 0.
  std::int64_t from = 0;
  std::int64_t shown = 0;
  friend bool operator==(const ShownClip&, const ShownClip&) = default;
};

/// Whether the one shows what was asked about better than the other: more of it, and as much from earlier on.
inline bool shows_better(const ShownClip& one, const ShownClip& other) {
  if (one.shown != other.shown) return one.shown > other.shown;
  return one.from != other.from ? one.from < other.from : one.clip < other.clip;
}

/// Thread-safe, and waits for no disk.
class Clips {
 public:
  virtual ~Clips() = default;
  /// The clip of this camera that shows most of that time; nothing: none that is known shows any of it.
  virtual std::optional<ShownClip> showing(const history::CameraId& camera,
                                           const history::WallRange& wall) const = 0;
};

}  // namespace vigil::actors
