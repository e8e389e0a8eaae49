// What an HC table costs beside the cache that it is for.
#pragma once

#include "engine/kv/retrieval/cluster_store.h"
#include "engine/kv/retrieval/resv_settings.h"

namespace vigil::retrieval {

/// Bytes of one layer's table, by what they grow with.
struct HcCost {
  double cluster = 0;
  double token = 0;
  /// Of the key and the value of a token in the cache.
  double kv = 0;

  /// Of the cache, with so many tokens in a cluster.
  double share(double tokens_per_cluster) const { return (cluster / tokens_per_cluster + token) / kv; }
};

/// What the paper's table has: a cluster's key in the cache's type, 32 hash bits and a count of 32 bits, and
/// 32 bits of each token. 1.67 % of the cache at its shape, 8 heads of 128 elements, and 32 tokens a cluster,
/// as section VI.B has it.
HcCost paper_cost(const KeyShape& shape);
/// What this table has: a cluster's key as a sum in f32, its hash in 64 bits, with the bits of mean keys its
/// projections in f32 besides; the counts and tokens alike.
HcCost table_cost(const KeyShape& shape, const ResvSettings& settings);

}  // namespace vigil::retrieval
