// What cameras take of a device at least, under a policy that computes every window anew: the limit beside
// which the number of those that were held is read.
#pragma once

#include "bench/engine_bench.h"
#include "bench/figures.h"
#include "config/settings.h"

namespace vigil::bench {

/// Seconds of a device that does one thing after the other, and never waits.
struct Floor {
  /// For one camera's stride: its frames through the vision tower, its window through the language model.
  double window = 0;
  /// For what follows the first token of its answers, a pass a token: shared by all that go together.
  double answer = 0;

  /// Shares of the device that so many cameras take, if all answers went together with rows of windows, at no
  /// cost of theirs; and if each went alone.
  double together(int cameras, double stride) const { return cameras * window / stride; }
  double one_by_one(int cameras, double stride) const { return cameras * (window + answer) / stride; }
};

/// The bench of what `floor_of` wants to know: this camera's window, its frames of this size in pixels, and
/// of each text as many tokens as `floor_tokens`.
EngineBenchOptions floor_bench(const config::CameraSettings& camera, int width, int height, int tokens);

/// Tokens of a camera's longest answer: one where none is told.
int floor_tokens(const config::CameraSettings& camera, bool tell_all);

/// From the medians of a bench of a window of `length` seconds (EngineBench::figures), of which `stride` are
/// new each time. `tokens`: of an answer, at least 1; where none was longer than one, no pass follows. Throws
/// std::invalid_argument for figures of no window.
Floor floor_of(const Figures& figures, double length, double stride, int tokens);

}  // namespace vigil::bench
