// Which frames are wanted: a rate over a stretch of time, decided by timestamps alone.
#pragma once

#include <cstdint>
#include <optional>

namespace vigil::media {

/// Picks the frames shown at `from + k / fps`. Frames are offered in order of presentation, each with the
/// time until which it is shown.
class Sampler {
 public:
  /// Throws std::invalid_argument unless fps > 0 (infinity takes every frame), from >= 0 and to > from.
  Sampler(double fps, double from, std::optional<double> to);

  bool begins_before_range(double seconds) const { return seconds < from_ - tolerance_; }
  bool begins_after_range(double seconds) const { return to_ && seconds >= *to_; }

  /// Whether the frame shown in [begin, end) is the next sample. The first frame offered is. Call once a
  /// frame.
  bool take(double begin, double end);

  /// Whether any sample time lies in [begin, end): what `take` would say of a frame that is not the first,
  /// told ahead.
  bool wants(double begin, double end) const;

 private:
  double first_target_at_or_after(double seconds) const;

  double fps_;
  double from_;
  std::optional<double> to_;
  /// Timestamps are rounded by containers (Matroska: to milliseconds); so much too late is in time.
  double tolerance_;
  bool started_ = false;
};

}  // namespace vigil::media
