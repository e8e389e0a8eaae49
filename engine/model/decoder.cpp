#include "engine/model/decoder.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/gated.h"
#include "kernels/gather/gather.h"
#include "kernels/linear/linear.h"
#include "kernels/quantize/quantize.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace vigil::model {
namespace {

using kernels::AttentionSegment;
using kernels::dense;
using kernels::DType;
using kernels::Matrix;

constexpr const char* kPrefix = "model.language_model.";

/// The part of a pass whose results are wanted: the same segments with fewer queries.
void narrow(std::span<const AttentionSegment> all, std::span<const std::int32_t> outputs,
            Decoder::Workspace::Narrow& to) {
  to.own.clear();
  to.own.reserve(outputs.size());  // segments hold spans into it
  to.segments.clear();
  std::size_t next = 0;
  for (const AttentionSegment& segment : all) {
    const std::size_t first = to.own.size();
    const std::int64_t end = segment.first_row + static_cast<std::int64_t>(segment.own.size());
    for (; next < outputs.size() && outputs[next] < end; ++next)
      to.own.push_back(segment.own[static_cast<std::size_t>(outputs[next] - segment.first_row)]);
    if (to.own.size() > first)
      to.segments.push_back(
          {segment.keys, std::span(to.own).subspan(first), static_cast<std::int64_t>(first)});
  }
}

}  // namespace

Decoder::Decoder(const TextConfig& config, Parameters parameters)
    : config_(config), parameters_(std::move(parameters)) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_width = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t kv_width = std::int64_t{config.num_key_value_heads} * config.head_dim;
  const std::int64_t inner = config.intermediate_size;
  const std::string prefix = kPrefix;

  embeddings_ = parameters_.table(prefix + "embed_tokens.weight", config.vocab_size, hidden);
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    const std::string mlp = layer + "mlp.";
    layers_.push_back({
        .input_norm = parameters_.vector(layer + "input_layernorm.weight", hidden),
        .attention_norm = parameters_.vector(layer + "post_attention_layernorm.weight", hidden),
        .attention = parameters_.projections(
            {{attention + "q_proj.weight", attention + "q_proj.bias", q_width, q_width},
             {attention + "k_proj.weight", attention + "k_proj.bias", kv_width, kv_width},
             {attention + "v_proj.weight", attention + "v_proj.bias", kv_width, kv_width}},
            hidden),
        .mlp = parameters_.projections(
            {{mlp + "gate_proj.weight", "", inner, inner}, {mlp + "up_proj.weight", "", inner, inner}},
            hidden),
        .o = parameters_.large(attention + "o_proj.weight", hidden, q_width),
        .down = parameters_.large(mlp + "down_proj.weight", hidden, inner),
    });
  }
  norm_ = parameters_.vector(prefix + "norm.weight", hidden);
  head_ = parameters_.matrix(config.tie_word_embeddings ? prefix + "embed_tokens.weight" : "lm_head.weight",
                             config.vocab_size, hidden);
  frequencies_ = parameters_.keep<kernels::RopeFrequency>(multimodal_rope(config));
  parameters_.ready();
}

void Decoder::check(std::span<const std::int32_t> tokens) const {
  for (const std::int32_t token : tokens)
    if (token < 0 || token >= config_.vocab_size)
      throw std::invalid_argument("token " + std::to_string(token) + " is outside of the vocabulary of " +
                                  std::to_string(config_.vocab_size));
}

void Decoder::embed(kernels::Stream& stream, Workspace& workspace, std::span<const std::int32_t> tokens,
                    Matrix to) const {
  check(tokens);
  workspace.tokens.reserve(stream, tokens.size_bytes());
  kernels::upload(stream, workspace.tokens.data(), tokens.data(), tokens.size_bytes());
  kernels::gather_rows(stream, embeddings_, workspace.tokens.as<std::int32_t>(),
                       to.rows_from(0, static_cast<std::int64_t>(tokens.size())));
}

Decoder::Prepared Decoder::prepare(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                                   kv::PagePool& pages) const {
  const std::size_t rows = pass.positions.size();
  if (!pass.tokens.empty() && pass.tokens.size() != rows)
    throw std::invalid_argument("decoder: tokens and positions differ in number");
  check(pass.tokens);
  std::size_t covered = 0;
  for (const AttentionSegment& segment : pass.segments) {
    if (segment.first_row != static_cast<std::int64_t>(covered))
      throw std::invalid_argument("decoder: segments do not follow each other");
    covered += segment.own.size();
  }
  if (covered != rows) throw std::invalid_argument("decoder: segments do not cover the rows");

  std::vector<kernels::RopePosition> axes;
  axes.reserve(rows);
  for (const Position& position : pass.positions) axes.push_back({position.t, position.h, position.w});
  workspace.table.clear();
  workspace.table.add(pass.tokens);
  workspace.table.add(std::span<const kernels::RopePosition>(axes));
  workspace.table.add(pass.outputs);
  workspace.table.send(stream);
  workspace.plan.assign(stream, pass.segments, pages.layer(0), config_.num_attention_heads);
  const std::size_t wanted = pass.outputs.size();
  if (wanted > 0 && wanted < rows) {
    narrow(pass.segments, pass.outputs, workspace.narrow);
    workspace.narrow.plan.assign(stream, workspace.narrow.segments, pages.layer(0),
                                 config_.num_attention_heads);
  }
  return {pass.hidden, static_cast<std::int64_t>(rows), static_cast<std::int64_t>(wanted),
          !pass.tokens.empty()};
}

Matrix Decoder::run(kernels::Stream& stream, Workspace& workspace, const Prepared& pass,
                    kv::PagePool& pages) const {
  const std::int64_t rows = pass.rows;
  const std::int64_t wanted = pass.wanted;
  const std::int64_t hidden_size = config_.hidden_size;
  const std::int64_t head_dim = config_.head_dim;
  const std::int64_t pairs = head_dim / 2;
  const std::int64_t q_width = config_.num_attention_heads * head_dim;
  const std::int64_t kv_width = config_.num_key_value_heads * head_dim;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));

  const auto room = [&](kernels::Buffer& buffer, DType dtype, std::int64_t count, std::int64_t cols) {
    buffer.reserve(stream, static_cast<std::size_t>(count * cols) * kernels::size_of(dtype));
    return dense(buffer.data(), dtype, count, cols);
  };
  Matrix hidden = dense(pass.hidden, DType::f32, rows, hidden_size);
  // Where all results are wanted, the states are what is left in `hidden`.
  const Matrix states = wanted == rows ? hidden : room(workspace.states, DType::f32, wanted, hidden_size);
  if (rows == 0) return states;
  if (pass.embeds) kernels::gather_rows(stream, embeddings_, workspace.table.at<std::int32_t>(0), hidden);

  Matrix cos = room(workspace.cos, DType::f32, rows, pairs);
  Matrix sin = room(workspace.sin, DType::f32, rows, pairs);
  kernels::rope_angles(stream, workspace.table.at<kernels::RopePosition>(1), rows, frequencies_, pairs,
                       cos.row<float>(0), sin.row<float>(0));

  // What only large products read is rounded as it is made, if they want it so.
  const bool quantized = parameters_.quantization() != Quantization::none;
  const auto operand = [&](kernels::Buffer& buffer, std::int64_t count, std::int64_t cols) {
    if (!quantized) return room(buffer, compute(), count, cols);
    buffer.reserve(stream, kernels::e4m3_bytes(count, cols));
    return kernels::e4m3_matrix(buffer.data(), count, cols);
  };
  Matrix normed = operand(workspace.normed, rows, hidden_size);
  Matrix projected = room(workspace.projected, compute(), rows, q_width + 2 * kv_width);
  Matrix attended = room(workspace.attended, compute(), rows, q_width);
  Matrix inner = room(workspace.inner, compute(), rows, std::int64_t{2} * config_.intermediate_size);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const kernels::KvLayer kv = pages.layer(static_cast<int>(i));
    const bool narrows = i + 1 == layers_.size() && wanted < rows;
    kernels::rms_norm(stream, hidden, layer.input_norm, config_.rms_norm_eps, normed);
    // All three at once, but where the queries of most rows are not wanted.
    layer.attention.apply(stream, normed, projected, narrows ? 1 : 0, narrows ? 2 : 3);
    kernels::store_rotated(stream, projected.columns(0, narrows ? 0 : q_width),
                           projected.columns(q_width, kv_width),
                           projected.columns(q_width + kv_width, kv_width), cos.row<float>(0),
                           sin.row<float>(0), workspace.plan, kv);

    if (narrows) {
      // From here on only the wanted rows matter.
      if (wanted == 0) return states;
      const auto keep = [&](Matrix& matrix, Matrix to) {
        kernels::gather_rows(stream, matrix, workspace.table.at<std::int32_t>(2), to);
        matrix = to;
      };
      keep(hidden, states);
      normed = operand(workspace.wanted_normed, wanted, hidden_size);
      kernels::rms_norm(stream, hidden, layer.input_norm, config_.rms_norm_eps, normed);
      keep(cos, room(workspace.wanted_cos, DType::f32, wanted, pairs));
      keep(sin, room(workspace.wanted_sin, DType::f32, wanted, pairs));
      for (Matrix* matrix : {&projected, &attended, &inner}) matrix->rows = wanted;
      layer.attention.apply(stream, normed, projected, 0, 1);
      kernels::rope(stream, projected.columns(0, q_width), head_dim, cos.row<float>(0), sin.row<float>(0));
    }

    kernels::paged_attention(stream, projected.columns(0, q_width), kv,
                             narrows ? workspace.narrow.plan : workspace.plan, scale, attended);
    kernels::linear(stream, attended, layer.o, hidden, {.accumulate = true});

    kernels::rms_norm(stream, hidden, layer.attention_norm, config_.rms_norm_eps, normed);
    const Matrix rounded =
        quantized ? operand(workspace.rounded, normed.rows, config_.intermediate_size) : Matrix{};
    kernels::linear(stream, gated(stream, layer.mlp, normed, inner, rounded), layer.down, hidden,
                    {.accumulate = true});
  }
  return states;
}

Matrix Decoder::logits(kernels::Stream& stream, Workspace& workspace, kernels::ConstMatrix states) const {
  workspace.normed.reserve(
      stream, static_cast<std::size_t>(states.rows * config_.hidden_size) * kernels::size_of(compute()));
  const Matrix normed = dense(workspace.normed.data(), compute(), states.rows, config_.hidden_size);
  kernels::rms_norm(stream, states, norm_, config_.rms_norm_eps, normed);
  workspace.logits.reserve(stream,
                           static_cast<std::size_t>(states.rows * config_.vocab_size) * sizeof(float));
  const Matrix logits = dense(workspace.logits.data(), DType::f32, states.rows, config_.vocab_size);
  kernels::linear(stream, normed, head_, logits);
  return logits;
}

}  // namespace vigil::model
