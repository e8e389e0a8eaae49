#include "engine/prune/differential_drop.h"

#include <utility>

namespace vigil::prune {

DifferentialDrop::DifferentialDrop(const PruningOptions& options)
    : options_(options), anchors_(options.anchor_seconds, options.anchor_phase) {}

Choice DifferentialDrop::choose(double seconds, std::span<const SampledPicture> frames) {
  check_pictures(frames, options_.grid);
  const model::PictureView& picture = frames.front().picture;
  const std::int64_t height = picture.height / options_.grid.group();
  const std::int64_t width = picture.width / options_.grid.group();
  const bool begins = last_.width != picture.width || last_.height != picture.height;
  const bool anchor = anchors_.comes(seconds);
  if (begins) missed_ = base::GridMask::none(height, width);
  base::GridMask encoded = std::exchange(missed_, base::GridMask::none(height, width));
  if (begins || anchor) encoded = base::GridMask::all(height, width);
  for (const SampledPicture& frame : frames) {
    luma_of(frame.picture, now_);
    if (!encoded.has_all()) {
      difference(now_, last_, options_.grid.patch, differences_);
      encoded.add(
          groups_above(differences_, options_.grid, now_.width, now_.height, options_.luma_threshold));
    }
    std::swap(last_, now_);
  }
  return {encoded};
}

void DifferentialDrop::lost(const base::GridMask& groups) {
  if (groups.height() == missed_.height() && groups.width() == missed_.width()) missed_.add(groups);
}

}  // namespace vigil::prune
