#include "engine/prune/codecsight.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/prune/luma.h"

namespace vigil::prune {

void CodecSight::add(const CodecFrame& frame, std::int64_t rows, std::int64_t columns) {
  const auto height = rows / options_.grid.merge;
  const auto width = columns / options_.grid.merge;
  if (frame.intra) {
    active_ = base::GridMask::none(height, width);
    return;
  }
  const bool weighs_residual = wants_residual();
  if (frame.motion.empty() || (weighs_residual && frame.residual.empty())) {
    active_ = base::GridMask::all(height, width);
    return;
  }
  const auto patches = static_cast<std::size_t>(rows * columns);
  if (frame.motion.size() != patches || (weighs_residual && frame.residual.size() != patches))
    throw std::invalid_argument("codecsight: motion or residual is not of the picture's grid");
  for (std::size_t i = 0; i < patches; ++i) {
    const float residual = weighs_residual ? options_.residual_weight * frame.residual[i] : 0;
    if (!(frame.motion[i] + residual > options_.motion_threshold)) continue;
    const auto at = static_cast<std::int64_t>(i);
    active_.add(at / columns / options_.grid.merge, at % columns / options_.grid.merge);
  }
}

Choice CodecSight::choose(double /*seconds*/, std::span<const SampledPicture> frames) {
  check_pictures(frames, options_.grid);
  const model::PictureView& picture = frames.front().picture;
  const std::int64_t rows = picture.height / options_.grid.patch;
  const std::int64_t columns = picture.width / options_.grid.patch;
  const std::int64_t height = rows / options_.grid.merge;
  const std::int64_t width = columns / options_.grid.merge;
  // Of a camera that begins, or of another size, nothing was seen before.
  if (active_.height() != height || active_.width() != width) {
    active_ = base::GridMask::all(height, width);
    missed_ = base::GridMask::none(height, width);
  }
  base::GridMask encoded = std::exchange(missed_, base::GridMask::none(height, width));
  for (const SampledPicture& sample : frames) {
    if (sample.frames.empty()) active_ = base::GridMask::all(height, width);
    for (const CodecFrame& frame : sample.frames) add(frame, rows, columns);
    const bool whole =
        std::any_of(sample.frames.begin(), sample.frames.end(), [](const CodecFrame& f) { return f.intra; });
    encoded.add(whole ? base::GridMask::all(height, width) : active_);
  }
  return {encoded};
}

void CodecSight::lost(const base::GridMask& groups) {
  if (groups.height() == missed_.height() && groups.width() == missed_.width()) missed_.add(groups);
}

}  // namespace vigil::prune
