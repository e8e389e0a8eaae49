#include "services/frame_shape.h"

#include "engine/model/preprocess.h"

namespace vigil::services {

actors::FrameShape frame_shape(const model::ModelFolder& folder) {
  const auto preprocessor = std::make_shared<const model::Preprocessor>(
      model::read_preprocess_config(folder.path).video, folder.config.vision);
  return {preprocessor->frames_per_patch(), [preprocessor](media::Size source) {
            const model::PictureSize size = preprocessor->frame_size({source.width, source.height});
            return media::Size{size.width, size.height};
          }};
}

}  // namespace vigil::services
