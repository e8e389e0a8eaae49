// The language model: one operation over any ascending subset of a sequence's tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/kv/page_store.h"
#include "engine/model/files/config.h"
#include "engine/model/language/attend.h"
#include "engine/model/language/positions.h"
#include "engine/model/language/shard.h"
#include "engine/model/layers/parameters.h"
#include "engine/model/layers/projections.h"
#include "kernels/attention/attention.h"
#include "kernels/collective/communicator.h"
#include "kernels/device/buffer.h"
#include "kernels/device/device_table.h"
#include "kernels/rope/rope.h"

namespace vigil::model {

/// A decoder (pre-norm, grouped-query attention with M-RoPE, gated MLPs) by the traits of its family. The
/// weights behind the parameters have to outlive it. Immutable: owners on several threads may run it at once,
/// each with a stream and a workspace of its own, over pages of its own. It may be a part of a decoder: then
/// the parts run the same passes at the same time, each on its device, its thread and pages of its own heads,
/// and each returns the same states.
class Decoder {
 public:
  /// The activations of one owner's passes, on its stream's device: reused from pass to pass, as large as the
  /// largest.
  struct Workspace {
    /// What the host says of a pass: tokens, positions, and the rows whose results are wanted.
    kernels::DeviceTable table;
    kernels::PagedPlan plan;
    /// The same for the wanted rows alone, where those are not all.
    struct Narrow {
      std::vector<std::int32_t> own;
      std::vector<kernels::AttentionSegment> segments;
      kernels::PagedPlan plan;
    } narrow;
    kernels::Buffer cos, sin, normed, projected, attended, inner, rounded;
    /// Of the rows whose results are wanted.
    kernels::Buffer wanted_cos, wanted_sin, states, wanted_normed;
    kernels::Buffer tokens, logits;
    /// Of queries that are guessed.
    kernels::Buffer ahead_normed, ahead;
    /// Of a probe: who writes keys of its first layer, and where the keys lie that others are compared with.
    struct Probe {
      std::vector<kernels::AttentionSegment> segments;
      kernels::PagedPlan plan;
      kernels::DeviceTable slots;
      kernels::Buffer distances;
    } probe;
    /// Of a part: this one among those that run its passes.
    std::optional<kernels::Communicator> ranks;
  };

  /// Throws ModelError for a missing tensor or a wrong shape, for a part that there is not (see DecoderPart)
  /// and for what the device cannot compute (limits.h).
  Decoder(const TextConfig& config, Parameters parameters, Shard shard = {});

  /// Of the whole, and what this one has of it.
  const TextConfig& config() const { return config_; }
  const DecoderPart& part() const { return part_; }
  /// The type of keys, values and activations.
  kernels::DType compute() const { return parameters_.compute(); }

  /// The embeddings of tokens, as the first rows of `to`, f32 [at least tokens, hidden_size] on the stream's
  /// device. Throws std::invalid_argument for an id outside of the vocabulary.
  void embed(kernels::Stream& stream, Workspace& workspace, std::span<const std::int32_t> tokens,
             kernels::Matrix to) const;

  struct Pass {
    /// f32 [rows, hidden_size], dense, on the stream's device: what enters the first layer for each query
    /// token. Overwritten.
    float* hidden = nullptr;
    /// One a row.
    std::span<const Position> positions;
    /// Whose rows these are, in order, and which keys each sees; the rows of all segments cover all rows.
    std::span<const kernels::AttentionSegment> segments;
    /// Ascending rows whose results are wanted. The last layer computes nothing but keys and values for the
    /// others.
    std::span<const std::int32_t> outputs;
    /// One a row: their embeddings are what enters. Empty: `hidden` holds it already.
    std::span<const std::int32_t> tokens = {};
    /// How exactly positions become angles: `wide` where they may be far from zero.
    kernels::RopeAngles angles = kernels::RopeAngles::single;
    /// What the rows see of the keys of their segments; has to live until the pass was run.
    const Attend* attend = &full_attention();
  };

  /// The one operation (prefill, chunked prefill, refresh and decode are uses of it): every layer computes
  /// fresh keys and values of the query tokens, writes them into the slots `keys[own[i]]`, and lets each
  /// query attend to every live key up to its own, or to what `attend` picks of them. Returns the states of
  /// the rows `outputs` after the last layer, before the final norm: f32 [outputs.size(), hidden_size], in
  /// the workspace until its next pass, or in `hidden` where all rows are wanted.
  kernels::Matrix forward(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                          const kv::PageStore& pages) const {
    return run(stream, workspace, prepare(stream, workspace, pass, pages), pages);
  }

  /// The shape of a pass that was prepared.
  struct Prepared {
    float* hidden = nullptr;
    std::int64_t rows = 0;
    std::int64_t wanted = 0;
    /// The tokens' embeddings enter.
    bool embeds = false;
    kernels::RopeAngles angles = kernels::RopeAngles::single;
    const Attend* attend = &full_attention();
  };
  /// The first half of `forward`: checks a pass and sends to the device what it has to know of it. Throws
  /// std::invalid_argument for segments that do not cover the rows, and for a token outside of the
  /// vocabulary.
  Prepared prepare(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                   const kv::PageStore& pages) const;
  /// The second half: submits operations, and neither waits nor reads what the host says. Where every row is
  /// a sequence of its own and wanted, they depend on the number of rows and on the kind
  /// of angles alone, and may be replayed for other
  /// tokens, positions and keys (kernels/device/replay.h).
  kernels::Matrix run(kernels::Stream& stream, Workspace& workspace, const Prepared& pass,
                      const kv::PageStore& pages) const;

  /// How far the second layer's keys in the cache are from what they would be: Σ_h |k[i, h] - key[i, h]|²
  /// over the KV heads of this part, one for each of the rows `outputs`. Keys and values of the first layer
  /// depend on a token's embedding and position alone, so what is there of these rows is exact; what they
  /// attend to by it, and the MLP, say what enters the second layer, of which the keys alone are computed
  /// (CacheBlend). Nothing of these rows is written. The other rows come before them in their segments: of
  /// these, keys and values of the first layer are written into their slots, and nothing else is.
  ///
  /// In two halves like `prepare` and `run`, for passes without `tokens`, which throw the same; and
  /// std::invalid_argument for rows in another order, and for a model of one layer, where nothing can differ.
  Prepared prepare_probe(kernels::Stream& stream, Workspace& workspace, const Pass& pass,
                         const kv::PageStore& pages) const;
  /// f32 [outputs.size()] in the workspace, on the stream's device, until its next pass.
  const float* probe(kernels::Stream& stream, Workspace& workspace, const Prepared& pass,
                     const kv::PageStore& pages) const;

  /// Turns the keys in `slots`, of all layers, by differences of positions, one a slot: with p' - p, keys of
  /// tokens at p become those of the same tokens at p' as if they had been computed there from the same
  /// states (equation 5 of CodecSight; kernels/paged_keys). Angles by f64, so that a far difference is as
  /// good as a near one; keys are rounded once more. Nobody else may read or write the slots meanwhile, and
  /// no slot comes twice. Submits, and does not wait. Throws std::invalid_argument for as many differences as
  /// there are not slots.
  void rotate_keys(kernels::Stream& stream, Workspace& workspace, std::span<const std::int32_t> slots,
                   std::span<const Position> by, const kv::PageStore& pages) const;

  /// The logits of states that `forward` returned (final norm and head): f32 [states.rows,
  /// part().vocabulary.count] in the workspace, until the next call.
  kernels::Matrix logits(kernels::Stream& stream, Workspace& workspace, kernels::ConstMatrix states) const;

 private:
  void check(std::span<const std::int32_t> tokens) const;

  /// hidden += x wᵀ, all parts together, and then, if `norm` is not null, normed = the norm of hidden.
  /// `which`: 0 and 1 in turn.
  void add(kernels::Stream& stream, const Workspace& workspace, int which, kernels::ConstMatrix x,
           kernels::ConstMatrix w, kernels::Matrix hidden, const float* norm, kernels::Matrix normed) const;

  /// Room for [rows, cols] in a buffer of the workspace.
  static kernels::Matrix room(kernels::Stream& stream, kernels::Buffer& buffer, kernels::DType dtype,
                              std::int64_t rows, std::int64_t cols);
  /// The same for the norm of hidden states: what only large products read is rounded as it is made, if they
  /// want it so; they round what comes out of a sum over ranks themselves.
  kernels::Matrix normed_room(kernels::Stream& stream, kernels::Buffer& buffer, std::int64_t rows) const;

  /// Tells `attend` what this layer's queries may be, by the state that has entered the one before.
  void look_ahead(kernels::Stream& stream, Workspace& workspace, std::size_t layer, const Attend& attend,
                  kernels::ConstMatrix hidden, const float* cos, const float* sin) const;

  /// What follows the keys and values of a layer: hidden += attention of q, then += the MLP; normed = the
  /// norm of hidden for the layer after, unless this is the last one. `inner`: working memory.
  void attend_and_mix(kernels::Stream& stream, Workspace& workspace, std::size_t layer, const Attend& attend,
                      kernels::ConstMatrix q, const kernels::KvLayer& kv, const kernels::PagedPlan& plan,
                      kernels::Matrix attended, kernels::Matrix inner, kernels::Matrix hidden,
                      kernels::Matrix normed) const;

  struct Layer {
    const float* input_norm;
    const float* attention_norm;
    /// Query, key and value; gate and value of the MLP.
    Projections attention, mlp;
    kernels::ConstMatrix o, down;
  };

  TextConfig config_;
  Parameters parameters_;
  DecoderPart part_;
  kernels::ConstMatrix head_;
  /// In the file's own type.
  kernels::ConstMatrix embeddings_;
  std::vector<Layer> layers_;
  const float* norm_ = nullptr;
  const kernels::RopeFrequency* frequencies_ = nullptr;
};

}  // namespace vigil::model
