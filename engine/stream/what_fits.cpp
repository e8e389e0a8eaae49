#include "engine/stream/what_fits.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace vigil::stream {
namespace {

/// Two digits, the last one rounded down.
std::string rounded_down(double value) {
  const double unit = std::pow(10.0, std::floor(std::log10(value)) - 1);
  // A value that has two digits must not lose one to how it is stored.
  const double digits = std::floor(value / unit + 1e-9);
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", digits * unit);
  return text;
}

}  // namespace

std::optional<std::string> what_fits(const LongClip& clip) {
  if (clip.frames < clip.least) return std::nullopt;
  // The last frame may make a patch of its own.
  const double frames = std::max(1.0, clip.frames - 2);
  char end[32];
  std::snprintf(end, sizeof end, "%.10g", std::floor(10 * (clip.from + frames / clip.fps)) / 10);
  const double fps = frames / clip.seconds;
  std::string text = "--to " + std::string(end);
  return fps > 0 && std::isfinite(fps) && fps >= 1e-4 ? "--fps " + rounded_down(fps) + " or " + text : text;
}

}  // namespace vigil::stream
