// Which rows go into the next pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace vigil::stream {

/// How large passes may be.
struct PassLimits {
  /// Rows of a pass; and of one that has texts, which get a token each pass, whatever it costs.
  std::int64_t rows = 1024;
  std::int64_t rows_with_texts = std::numeric_limits<std::int64_t>::max();
  /// Texts that go on by a pass, by a token or more.
  std::size_t texts = 64;
  /// Rows of what is proposed for them together; a quarter of `rows` at most.
  std::int64_t proposed = 256;
  /// Windows that a pass begins or goes on with.
  std::size_t windows = 8;
  /// Of windows that nobody has asked about yet: fewer rows wait for more; and a pass of anything that was
  /// asked is filled up with theirs to so many.
  std::int64_t rows_ahead = 1;
  std::int64_t rows_filled = 0;
  /// Questions are asked in the pass that computes the last of their window; otherwise in the next one.
  bool asks_at_once = true;
};

/// A window on its way to its answers.
struct WindowWork {
  /// Rows of its frames that are still to be computed.
  std::int64_t rows = 0;
  /// Rows of each question that is still to be asked.
  std::vector<std::int64_t> questions;
  bool is_asked = true;
};

/// What of it goes into the pass.
struct WindowShare {
  std::size_t window = 0;
  std::int64_t rows = 0;
  /// So many of its next questions, whole ones, so that each has its answer's first token.
  std::size_t questions = 0;
  friend bool operator==(const WindowShare&, const WindowShare&) = default;
};

struct PassShares {
  /// The first so many texts.
  std::size_t texts = 0;
  std::vector<WindowShare> windows;
};

/// `texts`: rows of each, one and those of what is proposed to follow. `windows`: those that were asked
/// before all others.
///
/// Texts first, since the weights that a window's rows need are read anyway; then windows, in the order that
/// is given, the next one only with what the one before has left. At least one thing goes in, if there is
/// any.
PassShares plan_pass(const PassLimits& limits, std::span<const std::int64_t> texts,
                     std::span<const WindowWork> windows);

}  // namespace vigil::stream
