#include "engine/model/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernels/linear/linear.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"

namespace vigil::model {
namespace {

using kernels::AttentionSegment;
using kernels::dense;
using kernels::DType;
using kernels::Matrix;

constexpr const char* kPrefix = "model.language_model.";

/// The part of a pass whose results are wanted, for the last layer: the same segments with fewer queries.
struct Narrowed {
  std::vector<std::int32_t> own;
  std::vector<AttentionSegment> segments;

  Narrowed(std::span<const AttentionSegment> all, std::span<const std::int32_t> outputs) {
    own.reserve(outputs.size());  // segments hold spans into it
    std::size_t next = 0;
    for (const AttentionSegment& segment : all) {
      const std::size_t first = own.size();
      const std::int64_t end = segment.first_row + static_cast<std::int64_t>(segment.own.size());
      for (; next < outputs.size() && outputs[next] < end; ++next)
        own.push_back(segment.own[static_cast<std::size_t>(outputs[next] - segment.first_row)]);
      if (own.size() > first)
        segments.push_back({segment.keys, std::span(own).subspan(first), static_cast<std::int64_t>(first)});
    }
  }
};

/// Moves row `rows[i]` to row i, in place; `rows` ascend, so nothing is overwritten before it was moved.
void compact_rows(std::byte* data, std::size_t row_bytes, std::span<const std::int32_t> rows) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    std::memmove(data + i * row_bytes, data + static_cast<std::size_t>(rows[i]) * row_bytes, row_bytes);
}

}  // namespace

Decoder::Decoder(const TextConfig& config, Parameters parameters)
    : config_(config), parameters_(std::move(parameters)), rope_(config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t q_width = std::int64_t{config.num_attention_heads} * config.head_dim;
  const std::int64_t kv_width = std::int64_t{config.num_key_value_heads} * config.head_dim;
  const std::string prefix = kPrefix;

  embeddings_ = &parameters_.tensor(prefix + "embed_tokens.weight", {config.vocab_size, hidden});
  for (int i = 0; i < config.num_hidden_layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    const std::string attention = layer + "self_attn.";
    const std::string mlp = layer + "mlp.";
    layers_.push_back({
        .input_norm = parameters_.vector(layer + "input_layernorm.weight", hidden),
        .attention_norm = parameters_.vector(layer + "post_attention_layernorm.weight", hidden),
        .q = parameters_.matrix(attention + "q_proj.weight", q_width, hidden),
        .k = parameters_.matrix(attention + "k_proj.weight", kv_width, hidden),
        .v = parameters_.matrix(attention + "v_proj.weight", kv_width, hidden),
        .o = parameters_.matrix(attention + "o_proj.weight", hidden, q_width),
        .gate = parameters_.matrix(mlp + "gate_proj.weight", config.intermediate_size, hidden),
        .up = parameters_.matrix(mlp + "up_proj.weight", config.intermediate_size, hidden),
        .down = parameters_.matrix(mlp + "down_proj.weight", hidden, config.intermediate_size),
        .q_bias = parameters_.vector(attention + "q_proj.bias", q_width),
        .k_bias = parameters_.vector(attention + "k_proj.bias", kv_width),
        .v_bias = parameters_.vector(attention + "v_proj.bias", kv_width),
    });
  }
  norm_ = parameters_.vector(prefix + "norm.weight", hidden);
  head_ = parameters_.matrix(config.tie_word_embeddings ? prefix + "embed_tokens.weight" : "lm_head.weight",
                             config.vocab_size, hidden);
}

void Decoder::embed(std::span<const std::int32_t> tokens, float* to) const {
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= config_.vocab_size)
      throw std::invalid_argument("token " + std::to_string(token) + " is outside of the vocabulary of " +
                                  std::to_string(config_.vocab_size));
    for (std::int64_t j = 0; j < config_.hidden_size; ++j)
      *to++ = element(*embeddings_, std::int64_t{token} * config_.hidden_size + j);
  }
}

void Decoder::forward(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                      kv::PagePool& pages) const {
  const auto rows = static_cast<std::int64_t>(pass.positions.size());
  const std::int64_t hidden_size = config_.hidden_size;
  const std::int64_t head_dim = config_.head_dim;
  const std::int64_t q_width = config_.num_attention_heads * head_dim;
  const std::int64_t kv_width = config_.num_key_value_heads * head_dim;
  const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
  if (rows == 0) return;

  std::vector<std::int32_t> slots;
  slots.reserve(static_cast<std::size_t>(rows));
  for (const AttentionSegment& segment : pass.segments) {
    if (segment.first_row != static_cast<std::int64_t>(slots.size()))
      throw std::invalid_argument("decoder: segments do not follow each other");
    for (const std::int32_t own : segment.own) slots.push_back(segment.keys[static_cast<std::size_t>(own)]);
  }
  if (static_cast<std::int64_t>(slots.size()) != rows)
    throw std::invalid_argument("decoder: segments do not cover the rows");

  workspace.cos.resize(static_cast<std::size_t>(rows * head_dim / 2));
  workspace.sin.resize(workspace.cos.size());
  rope_.angles(pass.positions, workspace.cos.data(), workspace.sin.data());

  const auto room = [&](kernels::Buffer& buffer, std::int64_t cols) {
    buffer.reserve(stream, static_cast<std::size_t>(rows * cols) * kernels::size_of(compute()));
    return dense(buffer.data(), compute(), rows, cols);
  };
  Matrix normed = room(workspace.normed, hidden_size);
  Matrix query = room(workspace.query, q_width);
  const Matrix key = room(workspace.key, kv_width);
  const Matrix value = room(workspace.value, kv_width);
  Matrix attended = room(workspace.attended, q_width);
  Matrix gate = room(workspace.gate, config_.intermediate_size);
  Matrix up = room(workspace.up, config_.intermediate_size);
  Matrix hidden = dense(pass.hidden, DType::f32, rows, hidden_size);
  std::span<const AttentionSegment> segments = pass.segments;
  const Narrowed narrowed(pass.segments, pass.outputs);

  for (std::size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    const kernels::KvLayer kv = pages.layer(static_cast<int>(i));
    kernels::rms_norm(stream, hidden, layer.input_norm.data(), config_.rms_norm_eps, normed);
    kernels::linear(stream, normed, layer.k, key, {.bias = layer.k_bias.data()});
    kernels::linear(stream, normed, layer.v, value, {.bias = layer.v_bias.data()});
    kernels::rope(stream, key, head_dim, workspace.cos.data(), workspace.sin.data());
    kernels::store_kv(stream, key, value, slots, kv);

    if (i + 1 == layers_.size()) {
      // From here on only the wanted rows matter.
      const auto wanted = static_cast<std::int64_t>(pass.outputs.size());
      if (wanted == 0) return;
      compact_rows(reinterpret_cast<std::byte*>(pass.hidden), static_cast<std::size_t>(hidden_size) * 4,
                   pass.outputs);
      compact_rows(workspace.normed.data(),
                   static_cast<std::size_t>(hidden_size) * kernels::size_of(compute()), pass.outputs);
      compact_rows(reinterpret_cast<std::byte*>(workspace.cos.data()),
                   static_cast<std::size_t>(head_dim / 2) * 4, pass.outputs);
      compact_rows(reinterpret_cast<std::byte*>(workspace.sin.data()),
                   static_cast<std::size_t>(head_dim / 2) * 4, pass.outputs);
      for (Matrix* matrix : {&normed, &query, &attended, &gate, &up, &hidden}) matrix->rows = wanted;
      segments = narrowed.segments;
    }

    kernels::linear(stream, normed, layer.q, query, {.bias = layer.q_bias.data()});
    kernels::rope(stream, query, head_dim, workspace.cos.data(), workspace.sin.data());
    kernels::paged_attention(stream, query, kv, segments, scale, attended);
    kernels::linear(stream, attended, layer.o, hidden, {.accumulate = true});

    kernels::rms_norm(stream, hidden, layer.attention_norm.data(), config_.rms_norm_eps, normed);
    kernels::linear(stream, normed, layer.up, up);
    kernels::linear(stream, normed, layer.gate, gate,
                    {.activation = kernels::Activation::silu, .multiply = up});
    kernels::linear(stream, gate, layer.down, hidden, {.accumulate = true});
  }
}

void Decoder::logits(kernels::Stream& stream, Workspace& workspace, const float* hidden, std::int64_t rows,
                     float* logits) const {
  workspace.normed.reserve(
      stream, static_cast<std::size_t>(rows * config_.hidden_size) * kernels::size_of(compute()));
  const Matrix normed = dense(workspace.normed.data(), compute(), rows, config_.hidden_size);
  kernels::rms_norm(stream, dense(hidden, DType::f32, rows, config_.hidden_size), norm_.data(),
                    config_.rms_norm_eps, normed);
  kernels::linear(stream, normed, head_, dense(logits, DType::f32, rows, config_.vocab_size));
}

}  // namespace vigil::model
