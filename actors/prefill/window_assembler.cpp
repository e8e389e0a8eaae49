#include "actors/prefill/window_assembler.h"

#include <algorithm>
#include <utility>

namespace vigil::actors {
namespace {

// Times are sums of fractions: what differs by less is the same.
constexpr double kMoment = 1e-6;

double end_of(const VisualPatch& patch) {
  return patch.tokens->seconds + patch.tokens->duration;
}

}  // namespace

WindowAssembler::WindowAssembler(WatchPtr watch)
    : watch_(std::move(watch)),
      length_(base::seconds(watch_->window.length)),
      stride_(base::seconds(watch_->window.stride)),
      tolerance_(time_tolerance(*watch_)) {}

WindowAssembler::Result WindowAssembler::push(VisualPatchPtr patch, const WatchPtr& watch) {
  const double seconds = patch->tokens->seconds;
  if (seconds <= last_ + kMoment) return {Verdict::late, {}};
  last_ = seconds;
  // Its rules may have changed since the patch before, and how much a window shows. A longer one grows from
  // what is still there.
  watch_ = watch;
  length_ = base::seconds(watch_->window.length);

  Result result;
  // A gap closes what was begun before it; after that, the strides without anything new are skipped.
  const std::int64_t stride = stride_at(*watch_, seconds);
  if (fresh_ > 0 && stride >= next_) {
    result.due.push_back(window_until(static_cast<double>(next_) * stride_));
    fresh_ = 0;
  }
  next_ = std::max(next_, stride + 1);

  // A window shows pictures of one size: after a change, it begins anew.
  const auto& tokens = *patch->tokens;
  if (!patches_.empty() && (patches_.back()->tokens->grid_height != tokens.grid_height ||
                            patches_.back()->tokens->grid_width != tokens.grid_width)) {
    patches_.clear();
    fresh_ = 0;
  }
  const double end = end_of(*patch);
  patches_.push_back(std::move(patch));
  ++fresh_;
  // A patch that is longer than a stride ends several at once: they would all show the same.
  const std::int64_t reached = stride_at(*watch_, end);
  if (reached >= next_) {
    result.due.push_back(window_until(static_cast<double>(reached) * stride_));
    fresh_ = 0;
    next_ = reached + 1;
  }
  const double oldest = static_cast<double>(next_) * stride_ - length_;
  while (!patches_.empty() && patches_.front()->tokens->seconds < oldest - tolerance_) patches_.pop_front();
  fresh_ = std::min(fresh_, patches_.size());
  return result;
}

std::optional<DueWindow> WindowAssembler::flush() {
  if (fresh_ == 0) return std::nullopt;
  fresh_ = 0;
  return window_until(end_of(*patches_.back()));
}

DueWindow WindowAssembler::window_until(double end) const {
  DueWindow window;
  window.watch = watch_;
  window.start = std::max(0.0, end - length_);
  window.end = end;
  for (const VisualPatchPtr& patch : patches_) {
    const double seconds = patch->tokens->seconds;
    if (seconds >= window.start - tolerance_ && seconds < end - tolerance_) window.patches.push_back(patch);
  }
  return window;
}

}  // namespace vigil::actors
