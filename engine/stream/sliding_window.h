// Which patches of a camera's stream make the windows that are due: one for each stride of stream time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "engine/model/vision/visual_tokens.h"
#include "engine/stream/camera_stream.h"

namespace vigil::stream {

/// All times are seconds of the camera's stream, which begins at 0. Not thread-safe.
class SlidingWindow {
 public:
  /// How much a window shows, how often one is due, and how much earlier than its place in the camera's
  /// sampling grid a frame may be: the frame that is *shown* at a sampling time began a moment before it.
  struct Shape {
    double length = 0;
    double stride = 0;
    double tolerance = 0;
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  /// A window that is due. Its patches are of one size, and never none.
  struct Due {
    PatchRange patches;
    /// [start, end); `end` is a multiple of the stride, but for the last window of a stream.
    double start = 0;
    double end = 0;
    friend bool operator==(const Due&, const Due&) = default;
  };

  struct Pushed {
    /// Not later than the patch before: a duplicate, or out of order. It is none of the stream's.
    bool is_late = false;
    /// More than one after a gap, in the order of time.
    std::vector<Due> due;
  };

  /// The next patch of the stream, counted from 0 over those that were not late; windows are of this
  /// length from now on; the stride stays what it was at first. One ends at every multiple of the stride, as
  /// soon as a patch reaches or passes that time; where a stride brought nothing new, none does. Until the
  /// stream is as long as a window, windows show what there is; a longer one grows from what is still wanted.
  Pushed push(const model::VisualTokens& patch, const Shape& shape);

  /// At the end of the stream: the window of what came after the last one, if anything did.
  std::optional<Due> flush();

  /// No window that is due later shows an earlier patch.
  std::int64_t wanted_from() const { return next_patch_ - static_cast<std::int64_t>(patches_.size()); }
  /// When the next window ends, if a patch comes by then.
  double next_end() const { return static_cast<double>(next_) * shape_.stride; }
  /// Patches that a later window may show.
  std::size_t size() const { return patches_.size(); }

  /// The stride of the stream, counted from 0, to which a frame or a patch of this time belongs.
  static std::int64_t stride_at(const Shape& shape, double seconds);

 private:
  struct Patch {
    double seconds = 0;
    double duration = 0;
    std::int64_t height = 0;
    std::int64_t width = 0;
    double end() const { return seconds + duration; }
  };
  Due window_until(double end) const;

  Shape shape_;
  /// The next multiple of the stride at which a window may end.
  std::int64_t next_ = 1;
  std::deque<Patch> patches_;
  /// The number of the patch that follows the last of them.
  std::int64_t next_patch_ = 0;
  /// Patches that no window has shown yet.
  std::size_t fresh_ = 0;
  double last_ = -1;  // as its frames tell; `patches_` have places in the grid
};

}  // namespace vigil::stream
