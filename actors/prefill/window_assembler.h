// A camera's visual tokens in the order of time, and the windows that become due: one for each stride of
// stream time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "actors/messages/data.h"

namespace vigil::actors {

/// A window that is due: the patches that it shows, and its place in camera time.
struct DueWindow {
  /// With the settings of its newest patch.
  WatchPtr watch;
  std::vector<VisualPatchPtr> patches;
  /// [start, end) in camera time; `end` is a multiple of the stride, but for the last window of a stream.
  double start = 0;
  double end = 0;
  /// Credits for its camera that are given back when it has been answered.
  std::uint32_t held_credits = 0;
};

/// Not thread-safe.
class WindowAssembler {
 public:
  enum class Verdict : std::uint8_t {
    taken,
    late,  ///< not later than the patch before: a duplicate, or out of order; ignored
  };

  struct Result {
    Verdict verdict = Verdict::taken;
    /// More than one after a gap, in the order of time.
    std::vector<DueWindow> due;
  };

  explicit WindowAssembler(WatchPtr watch);

  /// Takes the next patch, with its settings. A window ends at every multiple of the stride, as soon as a
  /// patch reaches or passes that time; where a stride brought nothing new, none does. Until the stream is as
  /// long as a window, windows show what there is.
  Result push(VisualPatchPtr patch, const WatchPtr& watch);

  /// At the end of the stream: the window of what came after the last one, if anything did.
  std::optional<DueWindow> flush();

  /// Patches that are kept.
  std::size_t size() const { return patches_.size(); }

 private:
  DueWindow window_until(double end) const;

  WatchPtr watch_;
  double length_;
  double stride_;
  double tolerance_;
  /// The next multiple of the stride at which a window may end.
  std::int64_t next_ = 1;
  std::deque<VisualPatchPtr> patches_;
  /// Patches that no window has shown yet.
  std::size_t fresh_ = 0;
  double last_ = -1;
};

}  // namespace vigil::actors
