#include "services/frame_shape.h"

namespace vigil::services {

std::shared_ptr<const model::Preprocessor> preprocessor_of(const model::ModelFolder& folder) {
  return std::make_shared<const model::Preprocessor>(model::read_preprocess_config(folder.path).video,
                                                     folder.config.vision);
}

actors::FrameShape frame_shape(const model::ModelFolder& folder) {
  const auto preprocessor = preprocessor_of(folder);
  const model::VisionConfig& vision = folder.config.vision;
  return {preprocessor->frames_per_patch(),
          [preprocessor](media::Size source) {
            const model::PictureSize size = preprocessor->frame_size({source.width, source.height});
            return media::Size{size.width, size.height};
          },
          {vision.patch_size, vision.spatial_merge_size,
           vision.window_size / (vision.patch_size * vision.spatial_merge_size)}};
}

}  // namespace vigil::services
