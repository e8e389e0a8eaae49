#include "engine/window/tower_encoder.h"

#include <stdexcept>
#include <utility>

namespace vigil::window {

TowerEncoder::TowerEncoder(std::shared_ptr<const model::ModelFolder> folder, kernels::DType compute,
                           int threads)
    : folder_(std::move(folder)),
      stream_(kernels::Stream::cpu(threads)),
      preprocessor_(model::read_preprocess_config(folder_->path).video, folder_->config.vision),
      tower_(folder_->config.vision, model::Parameters(folder_->weights, stream_, compute)) {}

int TowerEncoder::frames_per_patch() const {
  return folder_->config.vision.temporal_patch_size;
}

model::PictureSize TowerEncoder::frame_size(model::PictureSize source) const {
  return preprocessor_.frame_size(source);
}

std::vector<model::VisualTokensPtr> TowerEncoder::encode(std::span<const PatchFrames> patches) {
  const model::VisionConfig& vision = folder_->config.vision;
  std::vector<model::PatchGrid> grids;
  std::int64_t rows = 0;
  for (const PatchFrames& patch : patches) {
    if (patch.frames.empty())
      throw std::invalid_argument("a temporal patch without frames cannot be encoded");
    const model::PictureView& first = patch.frames.front();
    grids.push_back({1, first.height / vision.patch_size, first.width / vision.patch_size});
    rows += preprocessor_.patch_rows({first.width, first.height});
  }

  const std::int64_t values = tower_.patch_values();
  rows_.reserve(stream_, static_cast<std::size_t>(rows * values) * kernels::size_of(tower_.compute()));
  const kernels::Matrix all = kernels::dense(rows_.data(), tower_.compute(), rows, values);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const std::int64_t count = grids[i].patches();
    preprocessor_.cut(stream_, patches[i].frames, all.rows_from(row, count));
    row += count;
  }

  const std::int64_t square = std::int64_t{vision.spatial_merge_size} * vision.spatial_merge_size;
  tokens_.resize(static_cast<std::size_t>(rows / square * vision.out_hidden_size));
  tower_.encode(stream_, all, grids, tokens_.data());

  std::vector<model::VisualTokensPtr> encoded;
  const float* next = tokens_.data();
  for (std::size_t i = 0; i < patches.size(); ++i) {
    auto tokens = std::make_shared<model::VisualTokens>();
    tokens->grid_height = static_cast<int>(grids[i].h / vision.spatial_merge_size);
    tokens->grid_width = static_cast<int>(grids[i].w / vision.spatial_merge_size);
    tokens->seconds = patches[i].seconds;
    tokens->duration = patches[i].duration;
    const float* end = next + tokens->count() * vision.out_hidden_size;
    tokens->embeddings.assign(next, end);
    next = end;
    encoded.push_back(std::move(tokens));
  }
  return encoded;
}

}  // namespace vigil::window
