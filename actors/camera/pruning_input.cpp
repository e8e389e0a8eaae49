#include "actors/camera/pruning_input.h"

#include "media/group_motion.h"

namespace vigil::actors {

PruningInput::PruningInput(std::span<const media::SampledFrame> frames, const prune::PatchGrid& grid,
                           const prune::PruningPolicy& policy) {
  for (const media::SampledFrame& sample : frames) {
    const media::Image& image = *sample.image;
    std::vector<prune::CodecFrame>& codec = frames_.emplace_back();
    if (policy.wants_motion()) {
      const int rows = image.size.height / grid.patch, columns = image.size.width / grid.patch;
      for (const media::FrameMotion& frame : sample.motion->frames) {
        motion_.push_back(media::group_motion(frame, rows, columns));
        residual_.push_back(policy.wants_residual() ? media::group_residual(frame, rows, columns)
                                                    : std::vector<float>());
        codec.push_back({.intra = frame.intra, .motion = motion_.back(), .residual = residual_.back()});
      }
    }
    pictures_.push_back({{image.rgb.data(), image.size.width, image.size.height}, codec});
  }
}

}  // namespace vigil::actors
