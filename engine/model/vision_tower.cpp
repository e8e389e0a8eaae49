#include "engine/model/vision_tower.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/error.h"
#include "engine/model/gated.h"
#include "engine/model/limits.h"
#include "kernels/gather/gather.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"

namespace vigil::model {
namespace {

using kernels::dense;
using kernels::DType;
using kernels::Matrix;

// Qwen2.5-VL fixes both in code rather than in its configuration.
constexpr float kNormEpsilon = 1e-6F;
constexpr float kRopeTheta = 10000.0F;

}  // namespace

VisionPlan::VisionPlan(const VisionConfig& config, std::span<const PatchGrid> grids) {
  const std::int64_t merge = config.spatial_merge_size;
  const std::int64_t square = merge * merge;
  const std::int64_t window = config.window_size / merge / config.patch_size;
  const int axis_values = config.head_dim() / 2;
  std::vector<float> inverse_frequencies;
  for (int j = 0; j < axis_values / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(axis_values);
    inverse_frequencies.push_back(1.0F / std::pow(kRopeTheta, exponent));
  }

  std::int64_t first_square = 0;
  std::int64_t rows = 0;
  window_bounds.push_back(0);
  frame_bounds.push_back(0);
  for (const PatchGrid& grid : grids) {
    if (grid.t <= 0 || grid.h <= 0 || grid.w <= 0 || grid.h % merge != 0 || grid.w % merge != 0)
      throw std::invalid_argument("vision tower: a grid of " + std::to_string(grid.h) + " x " +
                                  std::to_string(grid.w) + " patches is no whole number of merged squares");
    const std::int64_t height = grid.h / merge;
    const std::int64_t width = grid.w / merge;
    for (std::int64_t t = 0; t < grid.t; ++t, first_square += height * width) {
      for (std::int64_t top = 0; top < height; top += window)
        for (std::int64_t left = 0; left < width; left += window) {
          for (std::int64_t y = top; y < std::min(top + window, height); ++y)
            for (std::int64_t x = left; x < std::min(left + window, width); ++x) {
              squares.push_back(static_cast<std::int32_t>(first_square + y * width + x));
              for (std::int64_t patch = 0; patch < square; ++patch)
                for (const std::int64_t at : {y * merge + patch / merge, x * merge + patch % merge})
                  for (const float inverse : inverse_frequencies) {
                    const float angle = static_cast<float>(at) * inverse;
                    cos.push_back(std::cos(angle));
                    sin.push_back(std::sin(angle));
                  }
              rows += square;
            }
          window_bounds.push_back(static_cast<std::int32_t>(rows));
        }
      frame_bounds.push_back(static_cast<std::int32_t>(rows));
    }
  }
}

VisionTower::VisionTower(const VisionConfig& config, Parameters parameters)
    : config_(config), parameters_(std::move(parameters)) {
  const std::string prefix = "model.visual.";
  const std::int64_t width = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const std::int64_t multiple = kernels::linear_multiple(parameters_.device());
  inner_ = (inner + multiple - 1) / multiple * multiple;
  if (config.hidden_act != "silu")
    throw ModelError("config.json: the vision tower's activation \"" + config.hidden_act +
                     "\" is not supported");
  if (config.head_dim() % 4 != 0)
    throw ModelError("config.json: vision heads of " + std::to_string(config.head_dim()) +
                     " values cannot be split into rows and columns of rotary pairs");
  check_limits(config, parameters_.device());

  patch_embed_ = parameters_.folded(
      prefix + "patch_embed.proj.weight",
      {width, config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size});
  for (int i = 0; i < config.depth; ++i) {
    const std::string block = prefix + "blocks." + std::to_string(i) + ".";
    const auto& full = config.fullatt_block_indexes;
    blocks_.push_back({
        .norm1 = parameters_.vector(block + "norm1.weight", width),
        .norm2 = parameters_.vector(block + "norm2.weight", width),
        .qkv = parameters_.large(block + "attn.qkv.weight", 3 * width, width),
        .proj = parameters_.large(block + "attn.proj.weight", width, width),
        .down = parameters_.large(block + "mlp.down_proj.weight", width, inner, width, inner_),
        .mlp = parameters_.projections(
            {{block + "mlp.gate_proj.weight", block + "mlp.gate_proj.bias", inner, inner_},
             {block + "mlp.up_proj.weight", block + "mlp.up_proj.bias", inner, inner_}},
            width),
        .qkv_bias = parameters_.bias(block + "attn.qkv.bias", 3 * width),
        .proj_bias = parameters_.bias(block + "attn.proj.bias", width),
        .down_bias = parameters_.bias(block + "mlp.down_proj.bias", width),
        .whole_frame = std::find(full.begin(), full.end(), i) != full.end(),
    });
  }
  const std::int64_t merged = width * config.spatial_merge_size * config.spatial_merge_size;
  merger_norm_ = parameters_.vector(prefix + "merger.ln_q.weight", width);
  merger_ = parameters_.matrix(prefix + "merger.mlp.0.weight", merged, merged);
  merger_bias_ = parameters_.vector(prefix + "merger.mlp.0.bias", merged);
  out_ = parameters_.matrix(prefix + "merger.mlp.2.weight", config.out_hidden_size, merged);
  out_bias_ = parameters_.vector(prefix + "merger.mlp.2.bias", config.out_hidden_size);
  parameters_.ready();
}

const VisionTower::Way& VisionTower::way_of(const kernels::Stream& stream, std::span<const PatchGrid> grids) {
  if (std::equal(grids.begin(), grids.end(), way_.grids.begin(), way_.grids.end()) && !grids.empty())
    return way_;
  const VisionPlan plan(config_, grids);
  std::vector<std::int32_t> places(plan.squares.size());
  for (std::size_t i = 0; i < plan.squares.size(); ++i)
    places[static_cast<std::size_t>(plan.squares[i])] = static_cast<std::int32_t>(i);
  way_.grids.clear();  // a plan that is half made is none
  way_.rows = plan.frame_bounds.back();
  way_.squares.assign(stream, plan.squares);
  way_.places.assign(stream, places);
  way_.cos.assign(stream, plan.cos);
  way_.sin.assign(stream, plan.sin);
  way_.windows = kernels::SegmentPlan(stream, plan.window_bounds);
  way_.frames = kernels::SegmentPlan(stream, plan.frame_bounds);
  way_.grids.assign(grids.begin(), grids.end());
  return way_;
}

Matrix VisionTower::encode(kernels::Stream& stream, kernels::ConstMatrix patches,
                           std::span<const PatchGrid> grids) {
  const Way& way = way_of(stream, grids);
  const std::int64_t rows = way.rows;
  const std::int64_t square = std::int64_t{config_.spatial_merge_size} * config_.spatial_merge_size;
  const std::int64_t width = config_.hidden_size;
  const std::int64_t square_values = square * width;
  const std::int64_t merged_rows = rows / square;
  const std::int64_t head_dim = config_.head_dim();
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
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
  kernels::gather_rows(stream, squares_of(embedded), way.squares.data(), squares_of(hidden));

  for (const Block& block : blocks_) {
    kernels::rms_norm(stream, hidden, block.norm1, kNormEpsilon, normed);
    kernels::linear(stream, normed, block.qkv, qkv, {.bias = block.qkv_bias});
    kernels::rotated_segment_attention(stream, qkv.columns(0, width), qkv.columns(width, width),
                                       qkv.columns(2 * width, width), way.cos.data(), way.sin.data(),
                                       block.whole_frame ? way.frames : way.windows, head_dim, scale,
                                       attended);
    kernels::linear(stream, attended, block.proj, hidden, {.bias = block.proj_bias, .accumulate = true});

    kernels::rms_norm(stream, hidden, block.norm2, kNormEpsilon, normed);
    kernels::linear(stream, gated(stream, block.mlp, normed, gate_up, rounded), block.down, hidden,
                    {.bias = block.down_bias, .accumulate = true});
  }

  kernels::rms_norm(stream, hidden, merger_norm_, kNormEpsilon, plain);
  const Matrix merged = room(merged_, compute(), merged_rows, square_values);
  kernels::linear(stream, dense(normed_.data(), compute(), merged_rows, square_values), merger_, merged,
                  {.bias = merger_bias_, .activation = kernels::Activation::gelu});
  const Matrix made = room(made_, DType::f32, merged_rows, config_.out_hidden_size);
  kernels::linear(stream, merged, out_, made, {.bias = out_bias_});
  kernels::gather_rows(stream, made, way.places.data(), tokens);
  return tokens;
}

}  // namespace vigil::model
