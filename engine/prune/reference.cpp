#include "engine/prune/reference.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace vigil::prune {
namespace {

/// Differences of noise alone stay below so many times their own mean: of patches of 196 pixels they hardly
/// vary, but the reference's noise adds to the frame's.
constexpr float kLumaNoiseMargin = 2;
constexpr float kNoiseMemory = 0.05F;

void copy_groups(const Luma& from, const base::GridMask& groups, int edge, Luma& to) {
  const auto width = static_cast<std::size_t>(from.width);
  for (const std::int32_t group : groups.list()) {
    const auto top = static_cast<std::size_t>(group / groups.width()) * static_cast<std::size_t>(edge);
    const auto left = static_cast<std::size_t>(group % groups.width()) * static_cast<std::size_t>(edge);
    for (std::size_t y = top; y < top + static_cast<std::size_t>(edge); ++y)
      std::copy_n(from.pixels.data() + y * width + left, edge, to.pixels.data() + y * width + left);
  }
}

}  // namespace

Reference::Reference(const PruningOptions& options)
    : options_(options), anchors_(options.anchor_seconds, options.anchor_phase) {}

float Reference::threshold() const {
  return std::max(options_.luma_threshold, kLumaNoiseMargin * noise_);
}

void Reference::hear(const Luma& frame) {
  if (!last_.same_size(frame)) {
    noise_ = 0;
    last_ = frame;
    return;
  }
  difference(frame, last_, options_.grid.patch, sorted_);
  const auto quarter = sorted_.begin() + static_cast<std::ptrdiff_t>(sorted_.size() / 4);
  std::nth_element(sorted_.begin(), quarter, sorted_.end());
  noise_ += kNoiseMemory * (*quarter - noise_);
  last_ = frame;
}

Choice Reference::choose(double seconds, std::span<const SampledPicture> frames) {
  check_pictures(frames, options_.grid);
  const model::PictureView& picture = frames.front().picture;
  const std::int64_t height = picture.height / options_.grid.group();
  const std::int64_t width = picture.width / options_.grid.group();
  const bool begins = seen_.width != picture.width || seen_.height != picture.height;
  const bool anchor = anchors_.comes(seconds);
  base::GridMask encoded = begins || anchor ? base::GridMask::all(height, width)
                                            : std::exchange(missed_, base::GridMask::none(height, width));
  if (begins || anchor) missed_ = base::GridMask::none(height, width);
  for (const SampledPicture& frame : frames) {
    luma_of(frame.picture, now_);
    hear(now_);
    if (encoded.has_all()) continue;
    difference(now_, seen_, options_.grid.patch, differences_);
    encoded.add(groups_above(differences_, options_.grid, now_.width, now_.height, threshold()));
  }
  // The model gets every frame of a group that it gets, so it has last seen the last one.
  if (encoded.has_all()) {
    seen_ = now_;
  } else {
    copy_groups(now_, encoded, options_.grid.group(), seen_);
  }
  return {encoded};
}

void Reference::lost(const base::GridMask& groups) {
  if (groups.height() == missed_.height() && groups.width() == missed_.width()) missed_.add(groups);
}

}  // namespace vigil::prune
