#include "actors/camera/pruning_input.h"

#include "media/group_motion.h"

namespace vigil::actors {

PruningInput::PruningInput(std::span<const media::SampledFrame> frames, const prune::PatchGrid& grid,
                           bool motion) {
  for (const media::SampledFrame& sample : frames) {
    const media::Image& image = *sample.image;
    std::vector<prune::CodecFrame>& codec = frames_.emplace_back();
    if (motion) {
      for (const media::FrameMotion& frame : sample.motion->frames) {
        motion_.push_back(
            media::group_motion(frame, image.size.height / grid.patch, image.size.width / grid.patch));
        codec.push_back({.intra = frame.intra, .motion = motion_.back()});
      }
    }
    pictures_.push_back({{image.rgb.data(), image.size.width, image.size.height}, codec});
  }
}

}  // namespace vigil::actors
