// A part of a decoder: some of its heads, of its MLP's columns and of its vocabulary.
#pragma once

#include <cstdint>

#include "engine/model/files/config.h"
#include "engine/model/layers/parameters.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Which of how many equal parts; the whole by default.
struct Shard {
  int rank = 0;
  int ranks = 1;
};

/// The rank's share of `total`: the shares follow each other, and each begins at a multiple of `multiple`.
Range share_of(std::int64_t total, Shard shard, std::int64_t multiple = 1);

/// What a part of a decoder has, as ranges of the whole.
///
/// Every rank computes the keys and values of its own KV heads and attends with the query heads that use
/// them, has the same columns of both halves of the MLP, and multiplies with the matching columns of the
/// output products: what these give on all ranks adds up to what the whole decoder computes. The embeddings
/// are everywhere (a look-up costs nothing); the head is shared by rows: each rank has the logits of some
/// tokens, and what is sought in them, the largest, is a few bytes of each, where whole logits would be a
/// third of a megabyte a rank and token.
struct DecoderPart {
  Shard shard;
  int heads = 0;
  int kv_heads = 0;
  /// Rows of the query product; of the key and of the value product.
  Range queries, keys;
  /// Columns of the MLP, and tokens whose logits it computes.
  Range inner, vocabulary;

  /// Throws ModelError for a model whose KV heads cannot be shared out evenly.
  DecoderPart(const TextConfig& config, Shard shard, kernels::DeviceKind device);
};

}  // namespace vigil::model
