// Any bytes as one of the JSON files of a model folder, by the first byte: 'g' generation_config.json, 'p'
// preprocessor_config.json, 'c' calibration.json, 'i' model.safetensors.index.json. Either one line of error,
// or values within the bounds that the engine computes with.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/model/files/calibration.h"
#include "engine/model/files/error.h"
#include "engine/model/files/weights.h"
#include "engine/model/language/generation.h"
#include "engine/model/vision/preprocess.h"
#include "tests/fuzz/model_files.h"

namespace {

using namespace vigil::model;
using vigil::testing::ModelFile;
using vigil::testing::require;

void fuzz_generation(std::string_view bytes) {
  const ModelFile file("generation_config.json", bytes);
  const GenerationConfig config = read_generation_config(file.folder());
  for (const std::int32_t id : config.end_token_ids) require(id >= 0 && config.ends(id));
  const Sampling sampling = config.sampling();
  require(sampling.temperature >= 0 && std::isfinite(sampling.temperature) && sampling.top_k >= 0);
  require(sampling.top_p >= 0 && sampling.top_p <= 1);
  require(sampling.repetition_penalty > 0 && std::isfinite(sampling.repetition_penalty));
}

void require_frames(const PreprocessSettings& settings) {
  require(settings.min_pixels >= 1 && settings.min_pixels <= settings.max_pixels);
  VisionConfig vision;
  vision.patch_size = settings.patch_size;
  vision.temporal_patch_size = settings.temporal_patch_size;
  vision.spatial_merge_size = settings.merge_size;
  const Preprocessor preprocessor(settings, vision);
  for (const PictureSize source : {PictureSize{1920, 1080}, PictureSize{1, 1}, PictureSize{2, 399}}) {
    try {
      const PictureSize frame = preprocessor.frame_size(source);
      const int group = settings.patch_size * settings.merge_size;
      require(frame.width > 0 && frame.height > 0);
      if (settings.do_resize) require(frame.width % group == 0 && frame.height % group == 0);
    } catch (const std::invalid_argument& error) {
      require(std::string_view(error.what()).find('\n') == std::string_view::npos);
    }
  }
}

void fuzz_preprocess(std::string_view bytes) {
  const ModelFile file("preprocessor_config.json", bytes);
  const PreprocessConfig config = read_preprocess_config(file.folder());
  require_frames(config.image);
  require_frames(config.video);
}

void fuzz_calibration(std::string_view bytes) {
  const Calibration read = parse_calibration(bytes, "fuzz");
  double before = -1;
  for (const double log_odds : {-1e9, -20.0, -1.0, 0.0, 1.0, 20.0, 1e9}) {
    const double probability = read.probability(log_odds);
    require(probability >= before && probability <= 1);
    before = probability;
  }
  require(before >= 0 && read.fitted_on.find('\n') == std::string::npos);
}

void fuzz_index(std::string_view bytes) {
  const ModelFile file("model.safetensors.index.json", bytes);
  (void)Weights::open(file.folder());
  // Nothing but the index is in the folder.
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    switch (data[0]) {
      case 'g':
        fuzz_generation(rest);
        break;
      case 'p':
        fuzz_preprocess(rest);
        break;
      case 'c':
        fuzz_calibration(rest);
        break;
      case 'i':
        fuzz_index(rest);
        break;
      default:
        return -1;
    }
  } catch (const ModelError& error) {
    vigil::testing::require_line(error);
  }
  return 0;
}
