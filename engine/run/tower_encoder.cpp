#include "engine/run/tower_encoder.h"

#include <algorithm>
#include <new>
#include <set>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "kernels/convert/convert.h"
#include "kernels/gather/gather.h"

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

std::vector<TowerEncoder::Lists> TowerEncoder::send(std::span<const Part> parts) {
  lists_.clear();
  const auto add = [&](const base::GridMask& groups) {
    const std::vector<std::int32_t> list = groups.list();
    lists_.insert(lists_.end(), list.begin(), list.end());
  };
  for (const Part& part : parts) {
    add(part.encoded);
    if (part.kept) add(*part.kept);
  }
  std::vector<Lists> there(parts.size());
  if (lists_.empty()) return there;
  table_.clear();
  table_.add(std::span<const std::int32_t>(lists_));
  table_.send(stream_);
  const auto* next = table_.at<std::int32_t>(0);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    there[i].encoded = next;
    next += parts[i].encoded.count();
    there[i].kept = next;
    if (parts[i].kept) next += parts[i].kept->count();
  }
  return there;
}

std::shared_ptr<TowerEncoder::Camera> TowerEncoder::remember(const std::string& camera,
                                                             const model::PatchGrid& grid) {
  if (camera.empty()) return nullptr;
  std::shared_ptr<Camera> known;
  {
    const std::lock_guard lock(mutex_);
    if (const auto entry = cameras_.find(camera); entry != cameras_.end()) known = entry->second;
    if (known) known->used = ++uses_;
  }
  if (known && known->frame.holds(grid)) return known;
  // What is of another size goes before there is room for more.
  forget(camera);
  known = std::make_shared<Camera>();
  const model::VisionConfig& vision = folder_->config.vision;
  const std::int64_t groups =
      grid.patches() / (std::int64_t{vision.spatial_merge_size} * vision.spatial_merge_size);
  try {
    tower_.reserve(stream_, known->frame, grid);
    known->tokens = kernels::Buffer(
        stream_, static_cast<std::size_t>(groups * vision.out_hidden_size) * kernels::size_of(embeddings_));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  known->used = ++uses_;
  cameras_[camera] = known;
  return known;
}

void TowerEncoder::forget(const std::string& camera) {
  const std::lock_guard lock(mutex_);
  cameras_.erase(camera);
}

void TowerEncoder::forget_half() {
  const std::lock_guard lock(mutex_);
  std::vector<std::uint64_t> uses;
  uses.reserve(cameras_.size());
  for (const auto& [name, camera] : cameras_) uses.push_back(camera->used);
  if (uses.empty()) return;
  const auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
  std::nth_element(uses.begin(), middle, uses.end());
  std::erase_if(cameras_, [&](const auto& each) { return each.second->used <= *middle; });
}

base::GridMask TowerEncoder::groups_of(const PatchFrames& patch) const {
  if (patch.encoded) return *patch.encoded;
  if (patch.frames.empty()) return {};
  const model::VisionConfig& vision = folder_->config.vision;
  const std::int64_t group = std::int64_t{vision.patch_size} * vision.spatial_merge_size;
  return base::GridMask::all(patch.frames.front().height / group, patch.frames.front().width / group);
}

TowerEncoder::Part TowerEncoder::part_of(const PatchFrames& patch) {
  const model::VisionConfig& vision = folder_->config.vision;
  if (patch.frames.empty()) throw std::invalid_argument("a temporal patch without frames cannot be encoded");
  const model::PictureView& first = patch.frames.front();
  Part part;
  part.grid = {1, first.height / vision.patch_size, first.width / vision.patch_size};
  const std::int64_t height = part.grid.h / vision.spatial_merge_size;
  const std::int64_t width = part.grid.w / vision.spatial_merge_size;
  part.encoded = groups_of(patch);
  part.kept = patch.kept;
  const auto is_other = [&](const std::optional<base::GridMask>& mask) {
    return mask && (mask->height() != height || mask->width() != width);
  };
  if (is_other(part.encoded) || is_other(part.kept) || is_other(patch.standing_out))
    throw std::invalid_argument("groups of another size than their frames cannot be encoded");
  if (part.grid.h % vision.spatial_merge_size != 0 || part.grid.w % vision.spatial_merge_size != 0)
    return part;  // the tower says what is wrong with it
  if (!part.kept) {
    forget(patch.camera);
    return part;
  }
  part.camera = remember(patch.camera, part.grid);
  if (!part.camera || !part.camera->frame.holds(part.grid)) part.encoded = base::GridMask::all(height, width);
  return part;
}

bool TowerEncoder::lacks_pixels(const PatchFrames& patch) {
  if (!patch.pixels || patch.frames.empty()) return false;
  base::GridMask needed = groups_of(patch);
  if (patch.kept) {
    const model::VisionConfig& vision = folder_->config.vision;
    const model::PictureView& first = patch.frames.front();
    const std::lock_guard lock(mutex_);
    const auto known = cameras_.find(patch.camera);
    if (known == cameras_.end() ||
        !known->second->frame.holds({1, first.height / vision.patch_size, first.width / vision.patch_size}))
      needed = base::GridMask::all(needed.height(), needed.width());
  }
  return !patch.pixels->has(needed);
}

std::vector<model::VisualTokensPtr> TowerEncoder::encode(std::span<const PatchFrames> patches) {
  std::int64_t asked = 0;
  for (const PatchFrames& patch : patches) asked += groups_of(patch).count();
  std::vector<model::VisualTokensPtr> encoded;
  std::vector<Part> parts;
  for (std::size_t first = 0; first < patches.size(); first += std::max<std::size_t>(1, parts.size())) {
    parts.clear();
    if (lacks_pixels(patches[first])) {
      encoded.push_back(nullptr);
      continue;
    }
    std::int64_t groups = 0;
    // What one patch of a camera leaves, the next one sees: never two of them in a pass.
    std::set<std::string_view> cameras;
    for (const PatchFrames& patch : patches.subspan(first)) {
      // After this pass it may be another matter.
      if (!parts.empty() && lacks_pixels(patch)) break;
      if (patch.kept && !cameras.insert(patch.camera).second) break;
      Part part = part_of(patch);
      groups += part.encoded.count();
      if (!parts.empty() && groups > asked) break;
      parts.push_back(std::move(part));
    }
    try {
      for (model::VisualTokensPtr& tokens : encode_pass(patches.subspan(first, parts.size()), parts))
        encoded.push_back(std::move(tokens));
    } catch (const std::bad_alloc&) {
      // What is remembered can be made again; without room for a pass nothing can.
      forget_half();
      throw;
    }
  }
  return encoded;
}

std::vector<model::VisualTokensPtr> TowerEncoder::encode_pass(std::span<const PatchFrames> patches,
                                                              const std::vector<Part>& parts) {
  const std::int64_t square =
      std::int64_t{folder_->config.vision.spatial_merge_size} * folder_->config.vision.spatial_merge_size;
  std::vector<model::PatchGrid> grids;
  std::vector<base::GridMask> groups;
  std::vector<model::SeenFrame*> seen;
  std::int64_t rows = 0;
  std::size_t frame_bytes = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const Part& part = parts[i];
    grids.push_back(part.grid);
    groups.push_back(part.encoded);
    seen.push_back(part.camera ? &part.camera->frame : nullptr);
    rows += part.encoded.count() * square;
    for (const model::PictureView& frame : patches[i].frames) frame_bytes += bytes_of(frame);
  }

  largest_pass_ = std::max(largest_pass_, rows / square);
  const std::int64_t values = tower_.patch_values();
  rows_.reserve(stream_, static_cast<std::size_t>(rows * values) * kernels::size_of(tower_.compute()));
  const kernels::Matrix all = kernels::dense(rows_.data(), tower_.compute(), rows, values);
  if (stream_.kind() != kernels::DeviceKind::cpu) frames_.reserve(stream_, frame_bytes);
  const std::vector<Lists> lists = send(parts);
  std::byte* to = frames_.data();
  std::int64_t row = 0;
  // A GPU cuts one patch while the next is on its way.
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const std::int64_t count = groups[i].count() * square;
    if (count > 0)
      preprocessor_.cut(stream_, place(patches[i], to), all.rows_from(row, count),
                        groups[i].has_all() ? nullptr : lists[i].encoded);
    row += count;
  }

  const kernels::Matrix made = tower_.encode(stream_, all, grids, groups, seen);

  std::vector<model::VisualTokensPtr> encoded;
  std::int64_t next = 0;
  for (std::size_t i = 0; i < patches.size(); ++i) {
    const Part& part = parts[i];
    auto tokens = std::make_shared<model::VisualTokens>();
    tokens->width = made.cols;
    tokens->kept = part.kept.value_or(part.encoded);
    if (patches[i].standing_out) tokens->standing_out = patches[i].standing_out->within(tokens->kept);
    tokens->encoded = part.encoded.count();
    tokens->seconds = patches[i].seconds;
    tokens->duration = patches[i].duration;
    tokens->intra = patches[i].intra;
    tokens->dtype = embeddings_;
    try {
      tokens->embeddings = tokens_of(part, made.rows_from(next, tokens->encoded), lists[i]);
    } catch (...) {
      // The tower has gone on; tokens that were not kept are missing.
      for (const Part& each : parts)
        if (each.camera) each.camera->frame.forget();
      throw;
    }
    next += tokens->encoded;
    encoded.push_back(std::move(tokens));
  }
  stream_.synchronize(kernels::Wait::sleep);  // they are read on other streams
  return encoded;
}

kernels::Buffer TowerEncoder::tokens_of(const Part& part, const kernels::Matrix& made, const Lists& lists) {
  const auto bytes = [&](std::int64_t count) {
    return static_cast<std::size_t>(count * made.cols) * kernels::size_of(embeddings_);
  };
  const auto matrix = [&](const kernels::Buffer& of, std::int64_t count) {
    return kernels::dense(of.data(), embeddings_, count, made.cols);
  };
  kernels::Buffer tokens(stream_, bytes(part.kept.value_or(part.encoded).count()));
  if (!part.kept) {
    kernels::convert_rows(stream_, made, matrix(tokens, made.rows));
    return tokens;
  }
  const std::int64_t cells = part.encoded.cells();
  kernels::Buffer& last = part.camera ? part.camera->tokens : all_tokens_;
  last.reserve(stream_, bytes(cells));
  rounded_.reserve(stream_, bytes(made.rows));
  kernels::convert_rows(stream_, made, matrix(rounded_, made.rows));
  kernels::scatter_rows(stream_, matrix(rounded_, made.rows), lists.encoded, matrix(last, cells));
  kernels::gather_rows(stream_, matrix(last, cells), lists.kept, matrix(tokens, part.kept->count()));
  return tokens;
}

}  // namespace vigil::run
