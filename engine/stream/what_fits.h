// What of a clip fits into the cache, where it does not as a whole.
#pragma once

#include <optional>
#include <string>

namespace vigil::stream {

/// In seconds; `frames` are what the cache has room for, `least` those that are encoded together.
struct LongClip {
  double from = 0;
  double seconds = 0;
  double fps = 0;
  double frames = 0;
  double least = 2;
};

/// The options that make a clip fit: "--fps 0.14 or --to 256". Numbers are rounded down, so that they do.
/// Nothing if none does.
std::optional<std::string> what_fits(const LongClip& clip);

}  // namespace vigil::stream
