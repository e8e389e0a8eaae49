#include "engine/run/tower_encoder.h"

#include <stdexcept>
#include <utility>

#include "kernels/convert/convert.h"

namespace vigil::run {
namespace {

std::size_t bytes_of(const model::PictureView& frame) {
  return std::size_t{3} * static_cast<std::size_t>(frame.width) * static_cast<std::size_t>(frame.height);
}

}  // namespace

TowerEncoder::TowerEncoder(std::shared_ptr<const model::ModelFolder> folder, kernels::DType compute,
                           kernels::Stream stream, model::Quantization quantization,
                           kernels::DType embeddings)
    : folder_(std::move(folder)),
      stream_(std::move(stream)),
      preprocessor_(model::read_preprocess_config(folder_->path).video, folder_->config.vision),
      tower_(folder_->config.vision, folder_->parameters(stream_, compute, quantization)),
      embeddings_(embeddings) {}

int TowerEncoder::frames_per_patch() const {
  return folder_->config.vision.temporal_patch_size;
}

model::PictureSize TowerEncoder::frame_size(model::PictureSize source) const {
  return preprocessor_.frame_size(source);
}

std::vector<model::PictureView> TowerEncoder::place(const PatchFrames& patch, std::byte*& to) {
  std::vector<model::PictureView> placed = patch.frames;
  if (stream_.kind() == kernels::DeviceKind::cpu) return placed;
  for (model::PictureView& frame : placed) {
    kernels::upload(stream_, to, frame.rgb, bytes_of(frame));
    frame.rgb = reinterpret_cast<const std::uint8_t*>(to);
    to += bytes_of(frame);
  }
  return placed;
}

std::vector<const std::int32_t*> TowerEncoder::send(std::span<const base::GridMask> groups) {
  squares_.clear();
  for (const base::GridMask& each : groups) {
    if (each.has_all()) continue;
    const std::vector<std::int32_t> list = each.list();
    squares_.insert(squares_.end(), list.begin(), list.end());
  }
  std::vector<const std::int32_t*> there(groups.size(), nullptr);
  if (squares_.empty()) return there;
  table_.clear();
  table_.add(std::span<const std::int32_t>(squares_));
  table_.send(stream_);
  const auto* next = table_.at<std::int32_t>(0);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].has_all()) continue;
    there[i] = next;
    next += groups[i].count();
  }
  return there;
}

std::vector<model::VisualTokensPtr> TowerEncoder::encode(std::span<const PatchFrames> patches) {
  const model::VisionConfig& vision = folder_->config.vision;
  const std::int64_t square = std::int64_t{vision.spatial_merge_size} * vision.spatial_merge_size;
  std::vector<model::PatchGrid> grids;
  std::vector<base::GridMask> groups;
  std::int64_t rows = 0;
  std::size_t frame_bytes = 0;
  for (const PatchFrames& patch : patches) {
    if (patch.frames.empty())
      throw std::invalid_argument("a temporal patch without frames cannot be encoded");
    const model::PictureView& first = patch.frames.front();
    grids.push_back({1, first.height / vision.patch_size, first.width / vision.patch_size});
    const std::int64_t height = grids.back().h / vision.spatial_merge_size;
    const std::int64_t width = grids.back().w / vision.spatial_merge_size;
    groups.push_back(patch.groups.value_or(base::GridMask::all(height, width)));
    if (groups.back().height() != height || groups.back().width() != width)
      throw std::invalid_argument("groups of another size than their frames cannot be encoded");
    rows += groups.back().count() * square;
    for (const model::PictureView& frame : patch.frames) frame_bytes += bytes_of(frame);
  }

  const std::int64_t values = tower_.patch_values();
  rows_.reserve(stream_, static_cast<std::size_t>(rows * values) * kernels::size_of(tower_.compute()));
  const kernels::Matrix all = kernels::dense(rows_.data(), tower_.compute(), rows, values);
  if (stream_.kind() != kernels::DeviceKind::cpu) frames_.reserve(stream_, frame_bytes);
  const std::vector<const std::int32_t*> squares = send(groups);
  std::byte* to = frames_.data();
  std::int64_t row = 0;
  // A GPU cuts one patch while the next is on its way.
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const std::int64_t count = groups[i].count() * square;
    if (count > 0) preprocessor_.cut(stream_, place(patches[i], to), all.rows_from(row, count), squares[i]);
    row += count;
  }

  const kernels::Matrix made = tower_.encode(stream_, all, grids, groups);

  std::vector<model::VisualTokensPtr> encoded;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    auto tokens = std::make_shared<model::VisualTokens>();
    tokens->width = made.cols;
    tokens->groups = std::move(groups[i]);
    tokens->seconds = patches[i].seconds;
    tokens->duration = patches[i].duration;
    tokens->intra = patches[i].intra;
    tokens->dtype = embeddings_;
    tokens->embeddings = kernels::Buffer(
        stream_, static_cast<std::size_t>(tokens->count() * made.cols) * kernels::size_of(embeddings_));
    kernels::convert_rows(stream_, made.rows_from(next, tokens->count()),
                          kernels::dense(tokens->embeddings.data(), embeddings_, tokens->count(), made.cols));
    next += tokens->count();
    encoded.push_back(std::move(tokens));
  }
  stream_.synchronize(kernels::Wait::sleep);  // they are read on other streams
  return encoded;
}

}  // namespace vigil::run
