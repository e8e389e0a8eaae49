#include "engine/model/language/decoder.h"

#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/model/layers/gated.h"
#include "engine/model/layers/limits.h"
#include "kernels/collective/collective.h"
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

Decoder::Decoder(const TextConfig& config, Parameters parameters, Shard shard)
    : config_(config), parameters_(std::move(parameters)), part_(config, shard, parameters_.device()) {
  check_limits(config, parameters_.device(), shard.ranks);
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_width = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t kv_width = std::int64_t{config.num_key_value_heads} * config.head_dim;
  const std::int64_t inner = config.intermediate_size;
  const TextNames& names = config.traits.names;
  const auto weight = [](std::string_view name) { return std::string(name) + ".weight"; };

  embeddings_ = parameters_.table(weight(names.embeddings), config.vocab_size, hidden);
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    const auto of_layer = [&](std::string_view name) { return weight(of_block(names.layers, i, name)); };
    const auto attention = [&](std::string_view name, std::int64_t rows, Range part) {
      const std::string bias = config.traits.qkv_bias ? of_block(names.layers, i, name) + ".bias" : "";
      return Parameters::Projection{of_layer(name), bias, rows, part.count, part};
    };
    const auto mlp = [&](std::string_view name) {
      return Parameters::Projection{of_layer(name), "", inner, part_.inner.count, part_.inner};
    };
    layers_.push_back({
        .input_norm = parameters_.vector(of_layer(names.input_norm), hidden),
        .attention_norm = parameters_.vector(of_layer(names.attention_norm), hidden),
        .attention = parameters_.projections(
            {attention(names.q, q_width, part_.queries), attention(names.k, kv_width, part_.keys),
             attention(names.v, kv_width, part_.keys)},
            hidden),
        .mlp = parameters_.projections({mlp(names.gate), mlp(names.up)}, hidden),
        .o = parameters_.large_columns(of_layer(names.o), hidden, q_width, part_.queries),
        .down = parameters_.large_columns(of_layer(names.down), hidden, inner, part_.inner),
    });
  }
  norm_ = parameters_.vector(weight(names.norm), hidden);
  head_ = parameters_.rows_of(weight(config.tie_word_embeddings ? names.embeddings : names.head),
                              config.vocab_size, hidden, part_.vocabulary);
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
                                   const kv::PageStore& pages) const {
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
  if (part_.shard.ranks != (workspace.ranks ? workspace.ranks->ranks() : 1))
    throw std::logic_error("decoder: a part runs together with all others");

  std::vector<kernels::RopePosition> axes;
  axes.reserve(rows);
  for (const Position& position : pass.positions) axes.push_back({position.t, position.h, position.w});
  workspace.table.clear();
  workspace.table.add(pass.tokens);
  workspace.table.add(std::span<const kernels::RopePosition>(axes));
  workspace.table.add(pass.outputs);
  workspace.table.send(stream);
  workspace.plan.assign(stream, pass.segments, pages.layer(0), part_.heads);
  const std::size_t wanted = pass.outputs.size();
  if (wanted > 0 && wanted < rows) {
    narrow(pass.segments, pass.outputs, workspace.narrow);
    workspace.narrow.plan.assign(stream, workspace.narrow.segments, pages.layer(0), part_.heads);
  }
  if (workspace.ranks)
    workspace.ranks->reserve(compute(), static_cast<std::int64_t>(rows), config_.hidden_size);
  return {pass.hidden,
          static_cast<std::int64_t>(rows),
          static_cast<std::int64_t>(wanted),
          !pass.tokens.empty(),
          pass.angles,
          pass.attend};
}

Matrix Decoder::room(kernels::Stream& stream, kernels::Buffer& buffer, DType dtype, std::int64_t rows,
                     std::int64_t cols) {
  buffer.reserve(stream, static_cast<std::size_t>(rows * cols) * kernels::size_of(dtype));
  return dense(buffer.data(), dtype, rows, cols);
}

Matrix Decoder::normed_room(kernels::Stream& stream, kernels::Buffer& buffer, std::int64_t rows) const {
  if (parameters_.quantization() == Quantization::none || part_.shard.ranks > 1)
    return room(stream, buffer, compute(), rows, config_.hidden_size);
  buffer.reserve(stream, kernels::e4m3_bytes(rows, config_.hidden_size));
  return kernels::e4m3_matrix(buffer.data(), rows, config_.hidden_size);
}

Matrix Decoder::run(kernels::Stream& stream, Workspace& workspace, const Prepared& pass,
                    const kv::PageStore& pages) const {
  const std::int64_t rows = pass.rows;
  const std::int64_t wanted = pass.wanted;
  const std::int64_t hidden_size = config_.hidden_size;
  const std::int64_t head_dim = config_.head_dim;
  const std::int64_t pairs = head_dim / 2;
  const std::int64_t q_width = part_.queries.count;
  const std::int64_t kv_width = part_.keys.count;

  Matrix hidden = dense(pass.hidden, DType::f32, rows, hidden_size);
  // Where all results are wanted, the states are what is left in `hidden`.
  const Matrix states =
      wanted == rows ? hidden : room(stream, workspace.states, DType::f32, wanted, hidden_size);
  if (rows == 0) return states;
  if (pass.embeds) kernels::gather_rows(stream, embeddings_, workspace.table.at<std::int32_t>(0), hidden);

  Matrix cos = room(stream, workspace.cos, DType::f32, rows, pairs);
  Matrix sin = room(stream, workspace.sin, DType::f32, rows, pairs);
  kernels::rope_angles(stream, workspace.table.at<kernels::RopePosition>(1), rows, frequencies_, pairs,
                       pass.angles, cos.row<float>(0), sin.row<float>(0));

  Matrix normed = normed_room(stream, workspace.normed, rows);
  Matrix projected = room(stream, workspace.projected, compute(), rows, q_width + 2 * kv_width);
  Matrix attended = room(stream, workspace.attended, compute(), rows, q_width);
  Matrix inner = room(stream, workspace.inner, compute(), rows, 2 * part_.inner.count);

  kernels::rms_norm(stream, hidden, layers_.front().input_norm, config_.rms_norm_eps, normed);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const kernels::KvLayer kv = pages.layer(static_cast<int>(i));
    const bool last = i + 1 == layers_.size();
    const bool narrows = last && wanted < rows;
    // All three at once, but where the queries of most rows are not wanted.
    layer.attention.apply(stream, normed, projected, narrows ? 1 : 0, narrows ? 2 : 3);
    kernels::store_rotated(stream, projected.columns(0, narrows ? 0 : q_width),
                           projected.columns(q_width, kv_width),
                           projected.columns(q_width + kv_width, kv_width), cos.row<float>(0),
                           sin.row<float>(0), workspace.plan, kv);

    // The last layer may ask for fewer rows: then it has queries of its own.
    const bool next_narrows = i + 2 == layers_.size() && wanted < rows;
    const bool looks_ahead = pass.attend->looks_ahead();
    if (i == 0 && !narrows && looks_ahead)
      pass.attend->ahead(stream, part_.shard.rank, 0, projected.columns(0, q_width), workspace.plan,
                         1.0F / std::sqrt(static_cast<float>(head_dim)));
    if (!last && !next_narrows && looks_ahead)
      look_ahead(stream, workspace, i + 1, *pass.attend, hidden, cos.row<float>(0), sin.row<float>(0));

    if (narrows) {
      // From here on only the wanted rows matter.
      if (wanted == 0) return states;
      const auto keep = [&](Matrix& matrix, Matrix to) {
        kernels::gather_rows(stream, matrix, workspace.table.at<std::int32_t>(2), to);
        matrix = to;
      };
      keep(hidden, states);
      normed = normed_room(stream, workspace.wanted_normed, wanted);
      kernels::rms_norm(stream, hidden, layer.input_norm, config_.rms_norm_eps, normed);
      keep(cos, room(stream, workspace.wanted_cos, DType::f32, wanted, pairs));
      keep(sin, room(stream, workspace.wanted_sin, DType::f32, wanted, pairs));
      for (Matrix* matrix : {&projected, &attended, &inner}) matrix->rows = wanted;
      layer.attention.apply(stream, normed, projected, 0, 1);
      kernels::rope(stream, projected.columns(0, q_width), head_dim, cos.row<float>(0), sin.row<float>(0));
    }

    attend_and_mix(stream, workspace, i, *pass.attend, projected.columns(0, q_width), kv,
                   narrows ? workspace.narrow.plan : workspace.plan, attended, inner, hidden, normed);
  }
  return states;
}

void Decoder::look_ahead(kernels::Stream& stream, Workspace& workspace, std::size_t layer,
                         const Attend& attend, kernels::ConstMatrix hidden, const float* cos,
                         const float* sin) const {
  const Layer& of = layers_[layer];
  const Matrix normed = normed_room(stream, workspace.ahead_normed, hidden.rows);
  const Matrix projected =
      room(stream, workspace.ahead, compute(), hidden.rows, part_.queries.count + 2 * part_.keys.count);
  kernels::rms_norm(stream, hidden, of.input_norm, config_.rms_norm_eps, normed);
  of.attention.apply(stream, normed, projected, 0, 1);
  const Matrix q = projected.columns(0, part_.queries.count);
  kernels::rope(stream, q, config_.head_dim, cos, sin);
  attend.ahead(stream, part_.shard.rank, static_cast<int>(layer), q, workspace.plan,
               1.0F / std::sqrt(static_cast<float>(config_.head_dim)));
}

void Decoder::attend_and_mix(kernels::Stream& stream, Workspace& workspace, std::size_t layer,
                             const Attend& attend, kernels::ConstMatrix q, const kernels::KvLayer& kv,
                             const kernels::PagedPlan& plan, Matrix attended, Matrix inner, Matrix hidden,
                             Matrix normed) const {
  const Layer& of = layers_[layer];
  const float scale = 1.0F / std::sqrt(static_cast<float>(config_.head_dim));
  attend.attend(stream, part_.shard.rank, static_cast<int>(layer), q, kv, plan, scale, attended);
  add(stream, workspace, 0, attended, of.o, hidden, of.attention_norm, normed);
  Matrix rounded;
  if (parameters_.quantization() != Quantization::none) {
    workspace.rounded.reserve(stream, kernels::e4m3_bytes(normed.rows, part_.inner.count));
    rounded = kernels::e4m3_matrix(workspace.rounded.data(), normed.rows, part_.inner.count);
  }
  const bool last = layer + 1 == layers_.size();
  add(stream, workspace, 1, gated(stream, of.mlp, config_.traits.activation, normed, inner, rounded), of.down,
      hidden, last ? nullptr : layers_[layer + 1].input_norm, normed);
}

void Decoder::add(kernels::Stream& stream, const Workspace& workspace, int which, kernels::ConstMatrix x,
                  kernels::ConstMatrix w, Matrix hidden, const float* norm, Matrix normed) const {
  if (part_.shard.ranks > 1) {
    kernels::linear(stream, x, w, workspace.ranks->part(which, compute(), hidden.rows, hidden.cols));
    kernels::add_parts(stream, *workspace.ranks, which, compute(), hidden,
                       {norm, config_.rms_norm_eps, normed});
    return;
  }
  kernels::linear(stream, x, w, hidden, {.accumulate = true});
  if (norm != nullptr) kernels::rms_norm(stream, hidden, norm, config_.rms_norm_eps, normed);
}

Matrix Decoder::logits(kernels::Stream& stream, Workspace& workspace, kernels::ConstMatrix states) const {
  workspace.normed.reserve(
      stream, static_cast<std::size_t>(states.rows * config_.hidden_size) * kernels::size_of(compute()));
  const Matrix normed = dense(workspace.normed.data(), compute(), states.rows, config_.hidden_size);
  kernels::rms_norm(stream, states, norm_, config_.rms_norm_eps, normed);
  workspace.logits.reserve(stream,
                           static_cast<std::size_t>(states.rows * part_.vocabulary.count) * sizeof(float));
  const Matrix logits = dense(workspace.logits.data(), DType::f32, states.rows, part_.vocabulary.count);
  kernels::linear(stream, normed, head_, logits);
  return logits;
}

}  // namespace vigil::model
