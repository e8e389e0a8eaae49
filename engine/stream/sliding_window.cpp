#include "engine/stream/sliding_window.h"

#include <algorithm>
#include <cmath>

namespace vigil::stream {
namespace {

// Times are sums of fractions: what differs by less is the same.
constexpr double kMoment = 1e-6;

/// Where a patch lies that should begin at `expected`: frames that jitter around their places in the sampling
/// grid must not move it from one stride to the next and back, or one of them ends two windows, another none.
/// The frame that is shown at a sampling time began up to an interval of the source before it; one that is
/// nearly a whole sampling interval too early is another one, and one that is late tells that some are
/// missing.
double place_of(double seconds, double expected, double tolerance) {
  const double early = expected - seconds;
  return early > -0.1 * tolerance && early < 1.8 * tolerance ? expected : seconds;
}

}  // namespace

std::int64_t SlidingWindow::stride_at(const Shape& shape, double seconds) {
  return static_cast<std::int64_t>(std::floor((seconds + shape.tolerance) / shape.stride));
}

SlidingWindow::Pushed SlidingWindow::push(const model::VisualTokens& tokens, const Shape& shape) {
  if (tokens.seconds <= last_ + kMoment) return {true, {}};
  last_ = tokens.seconds;
  shape_ = shape;
  Patch patch{tokens.seconds, tokens.duration, tokens.kept.height(), tokens.kept.width()};
  if (!patches_.empty()) patch.seconds = place_of(patch.seconds, patches_.back().end(), shape_.tolerance);

  Pushed result;
  // A gap closes what was begun before it; after that, the strides without anything new are skipped.
  const std::int64_t stride = stride_at(shape_, patch.seconds);
  if (fresh_ > 0 && stride >= next_) {
    result.due.push_back(window_until(static_cast<double>(next_) * shape_.stride));
    fresh_ = 0;
  }
  next_ = std::max(next_, stride + 1);

  // A window shows pictures of one size: after a change, it begins anew.
  if (!patches_.empty() && (patches_.back().height != patch.height || patches_.back().width != patch.width)) {
    patches_.clear();
    fresh_ = 0;
  }
  patches_.push_back(patch);
  ++next_patch_;
  ++fresh_;
  // A patch that is longer than a stride ends several at once: they would all show the same.
  const std::int64_t reached = stride_at(shape_, patch.end());
  if (reached >= next_) {
    result.due.push_back(window_until(static_cast<double>(reached) * shape_.stride));
    fresh_ = 0;
    next_ = reached + 1;
  }
  const double oldest = static_cast<double>(next_) * shape_.stride - shape_.length;
  while (!patches_.empty() && patches_.front().seconds < oldest - shape_.tolerance) patches_.pop_front();
  fresh_ = std::min(fresh_, patches_.size());
  return result;
}

std::optional<SlidingWindow::Due> SlidingWindow::flush() {
  if (fresh_ == 0) return std::nullopt;
  fresh_ = 0;
  Due last = window_until(patches_.back().end());
  // What only earlier windows showed is not there any more.
  if (const std::int64_t first = last.patches.first - wanted_from(); first >= 0)
    last.start = std::max(last.start, patches_[static_cast<std::size_t>(first)].seconds);
  return last;
}

SlidingWindow::Due SlidingWindow::window_until(double end) const {
  Due due;
  due.start = std::max(0.0, end - shape_.length);
  due.end = end;
  due.patches = {wanted_from(), wanted_from()};
  // Their times ascend.
  for (const Patch& patch : patches_) {
    if (patch.seconds >= end - shape_.tolerance) break;
    ++due.patches.last;
    if (patch.seconds < due.start - shape_.tolerance) due.patches.first = due.patches.last;
  }
  // One that is shorter than a patch shows the patch in which it lies.
  if (due.patches.count() == 0) --due.patches.first;
  return due;
}

}  // namespace vigil::stream
