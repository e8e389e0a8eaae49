// The language model: one operation over any ascending subset of a sequence's tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/kv/page_pool.h"
#include "engine/model/config.h"
#include "engine/model/parameters.h"
#include "engine/model/positions.h"
#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"

namespace vigil::model {

/// Qwen2.5-VL's decoder (pre-norm, grouped-query attention with M-RoPE, SwiGLU). The weights behind the
/// parameters have to outlive it. Immutable: owners on several threads may run it at once, each with a stream
/// and a workspace of its own, over pages of its own.
class Decoder {
 public:
  /// The activations of one owner's passes: reused from pass to pass, as large as the largest.
  struct Workspace {
    kernels::Buffer normed, query, key, value, attended, gate, up;
    std::vector<float> cos, sin;
  };

  /// Throws ModelError for a missing tensor or a wrong shape.
  Decoder(const TextConfig& config, Parameters parameters);

  const TextConfig& config() const { return config_; }
  /// The type of keys, values and activations.
  kernels::DType compute() const { return parameters_.compute(); }

  /// The embeddings of tokens, f32 [tokens, hidden_size], dense. Throws std::invalid_argument for an id
  /// outside of the vocabulary.
  void embed(std::span<const std::int32_t> tokens, float* to) const;

  struct Pass {
    /// f32 [rows, hidden_size], dense: what enters the first layer for each query token. Overwritten.
    float* hidden = nullptr;
    /// One a row.
    std::span<const Position> positions;
    /// Whose rows these are, in order, and which keys each sees; the rows of all segments cover all rows.
    std::span<const kernels::AttentionSegment> segments;
    /// Ascending rows whose results are wanted. The last layer computes nothing but keys and values for the
    /// others.
    std::span<const std::int32_t> outputs;
  };

  /// The one operation (prefill, chunked prefill, refresh and decode are uses of it): every layer computes
  /// fresh keys and values of the query tokens, writes them into the slots `keys[own[i]]`, and lets each
  /// query attend to every live key up to its own. On return row i of `hidden` holds the state of row
  /// `outputs[i]` after the last layer, before the final norm, for i < outputs.size(); the rest is undefined.
  void forward(kernels::Stream& stream, Workspace& workspace, const Pass& pass, kv::PagePool& pages) const;

  /// The logits of states that `forward` left: final norm and head. hidden: f32 [rows, hidden_size]; logits:
  /// f32 [rows, vocab_size].
  void logits(kernels::Stream& stream, Workspace& workspace, const float* hidden, std::int64_t rows,
              float* logits) const;

 private:
  struct Layer {
    std::vector<float> input_norm, attention_norm;
    kernels::ConstMatrix q, k, v, o, gate, up, down;
    std::vector<float> q_bias, k_bias, v_bias;
  };

  TextConfig config_;
  Parameters parameters_;
  kernels::ConstMatrix head_;
  const TensorView* embeddings_;
  std::vector<Layer> layers_;
  std::vector<float> norm_;
  MultimodalRope rope_;
};

}  // namespace vigil::model
