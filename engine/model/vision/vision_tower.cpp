#include "engine/model/vision/vision_tower.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/layers/gated.h"
#include "engine/model/layers/limits.h"
#include "kernels/gather/gather.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace vigil::model {
namespace {

using kernels::dense;
using kernels::DType;
using kernels::Matrix;

/// Sizes of frames that a planner keeps; cameras with more of them have what is theirs worked out again.
constexpr std::size_t kMostSizes = 64;

/// Throws ModelError for what the tower cannot compute, before sizes divide each other.
const VisionConfig& checked(const VisionConfig& config, kernels::DeviceKind device) {
  check_limits(config, device);
  return config;
}

/// Appends what is counted from a frame's begin, as it is counted from the pass's.
void append(const std::vector<std::int32_t>& from, std::int64_t offset, std::vector<std::int32_t>& to) {
  std::transform(from.begin(), from.end(), std::back_inserter(to),
                 [offset](std::int32_t value) { return static_cast<std::int32_t>(value + offset); });
}

}  // namespace

VisionPlanner::VisionPlanner(const VisionConfig& config)
    : merge_(config.spatial_merge_size), window_(config.window_size / merge_ / config.patch_size) {}

const VisionPlan& VisionPlanner::frame_of(std::int64_t height, std::int64_t width) {
  if (const auto known = frames_.find({height, width}); known != frames_.end()) return known->second;
  if (frames_.size() >= kMostSizes) frames_.clear();
  const std::int64_t square = merge_ * merge_;
  const std::int64_t down = height / merge_;
  const std::int64_t across = width / merge_;
  VisionPlan frame;
  frame.side = std::max(height, width);
  frame.places.resize(static_cast<std::size_t>(down * across));
  for (std::int64_t top = 0; top < down; top += window_)
    for (std::int64_t left = 0; left < across; left += window_) {
      for (std::int64_t y = top; y < std::min(top + window_, down); ++y)
        for (std::int64_t x = left; x < std::min(left + window_, across); ++x) {
          const std::int64_t of_input = y * across + x;
          frame.places[static_cast<std::size_t>(of_input)] = static_cast<std::int32_t>(frame.squares.size());
          frame.squares.push_back(static_cast<std::int32_t>(of_input));
          for (std::int64_t patch = 0; patch < square; ++patch)
            frame.positions.push_back({static_cast<std::int32_t>(y * merge_ + patch / merge_),
                                       static_cast<std::int32_t>(x * merge_ + patch % merge_)});
        }
      frame.window_bounds.push_back(static_cast<std::int32_t>(frame.positions.size()));
    }
  frame.frame_bounds.push_back(static_cast<std::int32_t>(frame.positions.size()));
  return frames_.emplace(std::pair(height, width), std::move(frame)).first->second;
}

void VisionPlanner::add_whole(const VisionPlan& frame) {
  const auto squares = static_cast<std::int64_t>(plan_.squares.size());
  const std::int64_t rows = plan_.patches();
  append(frame.squares, squares, plan_.squares);
  append(frame.places, squares, plan_.places);
  plan_.cells.insert(plan_.cells.end(), frame.squares.begin(), frame.squares.end());
  append(frame.window_bounds, rows, plan_.window_bounds);
  append(frame.frame_bounds, rows, plan_.frame_bounds);
  plan_.positions.insert(plan_.positions.end(), frame.positions.begin(), frame.positions.end());
}

void VisionPlanner::add_some(const VisionPlan& frame, const base::GridMask& encoded) {
  const std::int64_t square = merge_ * merge_;
  const std::size_t first = plan_.squares.size();
  plan_.places.resize(first + static_cast<std::size_t>(encoded.count()));
  ranks_.assign(frame.squares.size(), -1);
  std::int32_t rank = 0;
  for (const std::int32_t cell : encoded.list()) ranks_[static_cast<std::size_t>(cell)] = rank++;
  const auto bound = [&](std::vector<std::int32_t>& bounds) {
    if (const auto rows = static_cast<std::int32_t>(plan_.patches()); rows > bounds.back())
      bounds.push_back(rows);
  };
  auto window = frame.window_bounds.begin();
  for (std::size_t i = 0; i < frame.squares.size(); ++i) {
    const auto row = static_cast<std::ptrdiff_t>(i) * square;
    if (row == *window) {
      bound(plan_.window_bounds);
      ++window;
    }
    const std::int32_t of_input = ranks_[static_cast<std::size_t>(frame.squares[i])];
    if (of_input < 0) continue;
    plan_.places[first + static_cast<std::size_t>(of_input)] =
        static_cast<std::int32_t>(plan_.squares.size());
    plan_.squares.push_back(static_cast<std::int32_t>(first) + of_input);
    plan_.cells.push_back(frame.squares[i]);
    const auto position = frame.positions.begin() + row;
    plan_.positions.insert(plan_.positions.end(), position, position + square);
  }
  bound(plan_.window_bounds);
  bound(plan_.frame_bounds);
}

const VisionPlan& VisionPlanner::plan(std::span<const PatchGrid> grids,
                                      std::span<const base::GridMask> encoded) {
  if (!encoded.empty() && encoded.size() != grids.size())
    throw std::invalid_argument("vision tower: " + std::to_string(encoded.size()) + " masks for " +
                                std::to_string(grids.size()) + " grids");
  for (std::vector<std::int32_t>* values : {&plan_.squares, &plan_.places, &plan_.cells}) values->clear();
  for (std::vector<std::int32_t>* bounds : {&plan_.window_bounds, &plan_.frame_bounds}) bounds->assign(1, 0);
  plan_.positions.clear();
  plan_.side = 0;
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const PatchGrid& grid = grids[i];
    if (grid.t <= 0 || grid.h <= 0 || grid.w <= 0 || grid.h % merge_ != 0 || grid.w % merge_ != 0)
      throw std::invalid_argument("vision tower: a grid of " + std::to_string(grid.h) + " x " +
                                  std::to_string(grid.w) + " patches is no whole number of merged squares");
    const base::GridMask* mask = encoded.empty() ? nullptr : &encoded[i];
    if (mask != nullptr && (mask->height() != grid.h / merge_ || mask->width() != grid.w / merge_))
      throw std::invalid_argument("vision tower: a mask of " + std::to_string(mask->height()) + " x " +
                                  std::to_string(mask->width()) + " squares for a grid of " +
                                  std::to_string(grid.h) + " x " + std::to_string(grid.w) + " patches");
    const VisionPlan& frame = frame_of(grid.h, grid.w);
    plan_.side = std::max(plan_.side, frame.side);
    for (std::int64_t t = 0; t < grid.t; ++t) {
      if (mask == nullptr || mask->has_all()) {
        add_whole(frame);
      } else {
        add_some(frame, *mask);
      }
    }
  }
  return plan_;
}

VisionAngles::VisionAngles(const VisionConfig& config) {
  const int axis_values = config.head_dim() / 2;
  for (int j = 0; j < axis_values / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(axis_values);
    frequencies_.push_back({1.0F / std::pow(config.traits.rope_theta, exponent), 0});
  }
}

void VisionAngles::make(kernels::Stream& stream, const std::int32_t* positions, std::int64_t patches,
                        std::int64_t side) {
  const auto pairs = static_cast<std::int64_t>(frequencies_.size());
  const auto table = [&](kernels::Buffer& buffer, std::int64_t rows) {
    buffer.reserve(stream, static_cast<std::size_t>(rows * pairs) * sizeof(float));
    return dense(buffer.data(), DType::f32, rows, pairs);
  };
  if (side > side_) {
    // Twice as far: pictures that grow by and by do not come here each time.
    const std::int64_t reach = std::max<std::int64_t>(2 * side, 128);
    std::vector<kernels::RopePosition> places;
    places.reserve(static_cast<std::size_t>(reach));
    for (std::int64_t place = 0; place < reach; ++place)
      places.push_back({static_cast<std::int32_t>(place), 0, 0});
    side_ = 0;  // tables that are half made are none
    kernels::rope_angles(stream, kernels::DeviceArray<kernels::RopePosition>(stream, places).data(), reach,
                         kernels::DeviceArray<kernels::RopeFrequency>(stream, frequencies_).data(), pairs,
                         kernels::RopeAngles::single, table(axis_cos_, reach).row<float>(0),
                         table(axis_sin_, reach).row<float>(0));
    side_ = reach;
  }
  // A patch's line is that of its row, and after it that of its column.
  kernels::gather_rows(stream, table(axis_cos_, side_), positions, table(cos_, 2 * patches));
  kernels::gather_rows(stream, table(axis_sin_, side_), positions, table(sin_, 2 * patches));
}

VisionTower::VisionTower(const VisionConfig& config, Parameters parameters)
    : config_(checked(config, parameters.device())),
      parameters_(std::move(parameters)),
      planner_(config),
      angles_(config) {
  const VisionNames& names = config.traits.names;
  const auto weight = [](std::string_view name) { return std::string(name) + ".weight"; };
  const auto bias = [](std::string_view name) { return std::string(name) + ".bias"; };
  const std::int64_t width = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t multiple = kernels::linear_multiple(parameters_.device());
  inner_ = (inner + multiple - 1) / multiple * multiple;

  patch_embed_ = parameters_.folded(
      weight(names.patch_embed),
      {width, config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size});
  for (int i = 0; i < config.depth; ++i) {
    const auto in_block = [&](std::string_view name) { return of_block(names.blocks, i, name); };
    const auto gated_part = [&](std::string_view name) {
      return Parameters::Projection{weight(in_block(name)), bias(in_block(name)), inner, inner_};
    };
    const auto& full = config.fullatt_block_indexes;
    blocks_.push_back({
        .norm1 = parameters_.vector(weight(in_block(names.norm1)), width),
        .norm2 = parameters_.vector(weight(in_block(names.norm2)), width),
        .qkv = parameters_.large(weight(in_block(names.qkv)), 3 * width, width),
        .proj = parameters_.large(weight(in_block(names.proj)), width, width),
        .down = parameters_.large(weight(in_block(names.down)), width, inner, width, inner_),
        .mlp = parameters_.projections({gated_part(names.gate), gated_part(names.up)}, width),
        .qkv_bias = parameters_.bias(bias(in_block(names.qkv)), 3 * width),
        .proj_bias = parameters_.bias(bias(in_block(names.proj)), width),
        .down_bias = parameters_.bias(bias(in_block(names.down)), width),
        .whole_frame = std::find(full.begin(), full.end(), i) != full.end(),
    });
    if (blocks_.back().whole_frame) ++whole_blocks_;
  }
  const std::int64_t merged = width * config.spatial_merge_size * config.spatial_merge_size;
  merger_norm_ = parameters_.vector(weight(names.merger_norm), width);
  merger_ = parameters_.matrix(weight(names.merger_in), merged, merged);
  merger_bias_ = parameters_.vector(bias(names.merger_in), merged);
  out_ = parameters_.matrix(weight(names.merger_out), config.out_hidden_size, merged);
  out_bias_ = parameters_.vector(bias(names.merger_out), config.out_hidden_size);
  parameters_.ready();
}

const VisionTower::Way& VisionTower::way_of(kernels::Stream& stream, std::span<const PatchGrid> grids,
                                            std::span<const base::GridMask> encoded) {
  if (std::equal(grids.begin(), grids.end(), way_.grids.begin(), way_.grids.end()) &&
      std::equal(encoded.begin(), encoded.end(), way_.encoded.begin(), way_.encoded.end()) && !grids.empty())
    return way_;
  way_.grids.clear();  // a plan that is half made is none
  const VisionPlan& plan = planner_.plan(grids, encoded);
  way_.rows = plan.patches();
  if (way_.rows == 0) return way_;
  way_.table.clear();
  way_.table.add(std::span(plan.squares));
  way_.table.add(std::span(plan.places));
  way_.table.add(std::span(plan.positions));
  way_.table.send(stream);
  angles_.make(stream, way_.positions(), way_.rows, plan.side);
  way_.cells = plan.cells;
  way_.bounds.assign(1, 0);
  for (std::size_t i = 0; i < grids.size(); ++i) {
    const std::int64_t square = std::int64_t{config_.spatial_merge_size} * config_.spatial_merge_size;
    const std::int64_t rows = encoded.empty() ? grids[i].patches() : grids[i].t * encoded[i].count() * square;
    way_.bounds.push_back(way_.bounds.back() + static_cast<std::int32_t>(rows));
  }
  way_.windows = kernels::SegmentPlan(stream, plan.window_bounds);
  way_.frames = kernels::SegmentPlan(stream, plan.frame_bounds);
  way_.encoded.assign(encoded.begin(), encoded.end());
  way_.grids.assign(grids.begin(), grids.end());
  return way_;
}

std::size_t VisionTower::seen_bytes(const PatchGrid& grid) const {
  return static_cast<std::size_t>(whole_blocks_ * 2 * grid.patches() * config_.hidden_size) *
         kernels::size_of(compute());
}

void VisionTower::reserve(const kernels::Stream& stream, SeenFrame& frame, const PatchGrid& grid) const {
  if (frame.grid_ == grid && frame.keys_.bytes() > 0) return;
  frame = SeenFrame();
  frame.keys_ = kernels::Buffer(stream, seen_bytes(grid));
  frame.grid_ = grid;
}

kernels::PicturePlan VisionTower::pictures_of(kernels::Stream& stream, const Way& way,
                                              std::span<SeenFrame* const> seen) {
  const std::int64_t square = std::int64_t{config_.spatial_merge_size} * config_.spatial_merge_size;
  const std::int64_t width = config_.hidden_size;
  std::int64_t unseen = 0;
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i] == nullptr) unseen += way.bounds[i + 1] - way.bounds[i];
  unseen_.reserve(stream, static_cast<std::size_t>(2 * unseen * width) * kernels::size_of(compute()));
  std::byte* next = unseen_.data();
  std::vector<kernels::PictureKeys> pictures;
  std::vector<std::int32_t> places;
  places.reserve(static_cast<std::size_t>(way.rows));
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const std::int64_t first = way.bounds[i], rows = way.bounds[i + 1] - first;
    if (seen[i] == nullptr) {
      // It sees what it brings: each block writes over what the one before has left.
      pictures.push_back({next, 0, rows});
      next += static_cast<std::size_t>(2 * rows * width) * kernels::size_of(compute());
      for (std::int64_t row = 0; row < rows; ++row) places.push_back(static_cast<std::int32_t>(row));
      continue;
    }
    const std::int64_t all = seen[i]->grid_.patches();
    pictures.push_back({seen[i]->keys_.data(), 2 * all * width, all});
    for (std::int64_t row = first; row < first + rows; ++row)
      places.push_back(static_cast<std::int32_t>(way.cells[static_cast<std::size_t>(row / square)] * square +
                                                 row % square));
  }
  return {stream, pictures, way.bounds, places};
}

bool VisionTower::begin_seen(kernels::Stream& stream, std::span<const PatchGrid> grids,
                             std::span<const base::GridMask> encoded, std::span<SeenFrame* const> seen) {
  if (!seen.empty() && seen.size() != grids.size())
    throw std::invalid_argument("vision tower: what was seen of " + std::to_string(seen.size()) +
                                " grids of " + std::to_string(grids.size()));
  bool remembers = false;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == nullptr) continue;
    remembers = true;
    if (std::find(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(i), seen[i]) !=
        seen.begin() + static_cast<std::ptrdiff_t>(i))
      throw std::invalid_argument("vision tower: two pictures of one camera in a pass");
    const bool is_whole = encoded.empty() || encoded[i].has_all();
    if (grids[i].t != 1 || (!is_whole && !seen[i]->holds(grids[i])))
      throw std::invalid_argument("vision tower: a part of a frame of which nothing was seen");
  }
  // From here on they hold neither what was there nor what will be.
  for (std::size_t i = 0; i < seen.size(); ++i) {
    if (seen[i] == nullptr) continue;
    seen[i]->forget();
    reserve(stream, *seen[i], grids[i]);
  }
  return remembers;
}

Matrix VisionTower::encode(kernels::Stream& stream, kernels::ConstMatrix patches,
                           std::span<const PatchGrid> grids, std::span<const base::GridMask> encoded,
                           std::span<SeenFrame* const> seen) {
  const Way& way = way_of(stream, grids, encoded);
  const std::int64_t rows = way.rows;
  const std::int64_t square = std::int64_t{config_.spatial_merge_size} * config_.spatial_merge_size;
  const std::int64_t width = config_.hidden_size;
  const std::int64_t square_values = square * width;
  const std::int64_t merged_rows = rows / square;
  const std::int64_t head_dim = config_.head_dim();
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  const VisionTraits& traits = config_.traits;
  if (patches.rows != rows || patches.cols != patch_values())
    throw std::invalid_argument("vision tower: " + std::to_string(patches.rows) + " patches of " +
                                std::to_string(patches.cols) + " values do not fill grids of " +
                                std::to_string(rows) + " patches of " + std::to_string(patch_values()));

  const auto room = [&](kernels::Buffer& buffer, DType dtype, std::int64_t count, std::int64_t cols) {
    buffer.reserve(stream, static_cast<std::size_t>(count * cols) * kernels::size_of(dtype));
    return dense(buffer.data(), dtype, count, cols);
  };
  const Matrix tokens = room(tokens_, DType::f32, merged_rows, config_.out_hidden_size);
  if (rows == 0) return tokens;
  const bool remembers = begin_seen(stream, grids, encoded, seen);
  const Matrix hidden = room(hidden_, DType::f32, rows, width);
  // What only large products read is rounded as it is made, if they want it so; what the merger reads is not.
  const bool quantized = parameters_.quantization() != Quantization::none;
  const auto room_e4m3 = [&](kernels::Buffer& buffer, std::int64_t cols) {
    buffer.reserve(stream, kernels::e4m3_bytes(rows, cols));
    return kernels::e4m3_matrix(buffer.data(), rows, cols);
  };
  const Matrix plain = room(normed_, compute(), rows, width);
  const Matrix normed = quantized ? room_e4m3(rounded_, width) : plain;
  const Matrix rounded = quantized ? room_e4m3(rounded_inner_, inner_) : Matrix{};
  const Matrix qkv = room(qkv_, compute(), rows, 3 * width);
  const Matrix attended = room(attended_, compute(), rows, width);
  const Matrix gate_up = room(gate_up_, compute(), rows, 2 * inner_);

  const Matrix embedded = room(embedded_, DType::f32, rows, width);
  kernels::linear(stream, patches, patch_embed_, embedded);
  const auto squares_of = [&](const Matrix& matrix) {
    return dense(matrix.data, DType::f32, merged_rows, square_values);
  };
  kernels::gather_rows(stream, squares_of(embedded), way.squares(), squares_of(hidden));

  const kernels::PicturePlan pictures = remembers ? pictures_of(stream, way, seen) : kernels::PicturePlan();
  std::int64_t whole_block = 0;
  for (const Block& block : blocks_) {
    kernels::rms_norm(stream, hidden, block.norm1, traits.norm_eps, normed);
    kernels::linear(stream, normed, block.qkv, qkv, {.bias = block.qkv_bias});
    const Matrix q = qkv.columns(0, width), k = qkv.columns(width, width), v = qkv.columns(2 * width, width);
    if (block.whole_frame && remembers) {
      kernels::rope(stream, qkv.columns(0, 2 * width), head_dim, angles_.cos(), angles_.sin());
      kernels::store_keys(stream, k, v, pictures, whole_block);
      kernels::picture_attention(stream, q, pictures, whole_block++, head_dim, scale, attended);
    } else {
      kernels::rotated_segment_attention(stream, q, k, v, angles_.cos(), angles_.sin(),
                                         block.whole_frame ? way.frames : way.windows, head_dim, scale,
                                         attended);
    }
    kernels::linear(stream, attended, block.proj, hidden, {.bias = block.proj_bias, .accumulate = true});

    kernels::rms_norm(stream, hidden, block.norm2, traits.norm_eps, normed);
    kernels::linear(stream, gated(stream, block.mlp, traits.activation, normed, gate_up, rounded), block.down,
                    hidden, {.bias = block.down_bias, .accumulate = true});
  }

  kernels::rms_norm(stream, hidden, merger_norm_, traits.norm_eps, plain);
  const Matrix merged = room(merged_, compute(), merged_rows, square_values);
  kernels::linear(stream, dense(normed_.data(), compute(), merged_rows, square_values), merger_, merged,
                  {.bias = merger_bias_, .activation = traits.merger_activation});
  const Matrix made = room(made_, DType::f32, merged_rows, config_.out_hidden_size);
  kernels::linear(stream, merged, out_, made, {.bias = out_bias_});
  kernels::gather_rows(stream, made, way.places(), tokens);
  for (SeenFrame* frame : seen)
    if (frame != nullptr) frame->is_whole_ = true;
  return tokens;
}

}  // namespace vigil::model
