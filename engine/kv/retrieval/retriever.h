// Which tokens of a stream a question needs: ReSV, and what it is to be compared with.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "engine/kv/retrieval/hc_table.h"
#include "engine/kv/retrieval/selection.h"

namespace vigil::retrieval {

/// Queries of one layer.
struct Asked {
  int layer = 0;
  /// f32 or bf16 [rows, heads * head_dim] on the stream's device, turned to their places.
  kernels::ConstMatrix q;
  /// Of products of queries and keys, as in attention.
  float scale = 1;
  /// How many tokens a KV head may have, at least 0. ReSV, whose threshold says that, and "all" do not look
  /// at it.
  std::int64_t tokens = 0;
};

/// Of each KV head, the tokens of the stream as ascending ranges that do not touch.
using ChosenTokens = std::vector<std::vector<TokenRange>>;

/// What of a stream's past is fetched. Keys of all layers are told when they are computed; a layer is asked
/// when its queries are there. One stream of one device; not thread-safe.
class Retriever {
 public:
  virtual ~Retriever() = default;

  /// The keys of the next patch. Throws std::invalid_argument for keys that do not fit.
  virtual void append(kernels::Stream& stream, const NewKeys& keys) = 0;

  /// The tokens to fetch of those told so far. Waits for the device: to compare policies with; a fetch on the
  /// device goes by `HcTable::select`. Throws std::invalid_argument for queries that do not fit, and for
  /// fewer than no tokens.
  virtual ChosenTokens choose(kernels::Stream& stream, const Asked& asked) = 0;

  /// What it keeps on the device besides the cache.
  virtual std::int64_t bytes() const = 0;
};
using RetrieverPtr = std::unique_ptr<Retriever>;

/// The names that `make_retriever` knows besides those of `resv_named`.
inline constexpr std::array<std::string_view, 5> kControls{"all", "recent", "random", "topk", "rekv"};

/// A form of ReSV with its own settings (`resv_named`), or a control. "all": every token; "recent": the last
/// ones; "random": any, others for each KV head, layer and length of the stream; "topk": those with most of
/// the attention of all rows (a KV head's rows are those of its query heads), the costly yardstick: it scores
/// every key; "rekv": the patches whose mean keys have the largest products with the mean query, over all
/// heads at once and until the tokens are reached, the last patch whole ("Streaming Video Question-Answering
/// with In-context Video KV-Cache Retrieval"). Throws std::invalid_argument for another name and a shape of
/// nothing.
RetrieverPtr make_retriever(std::string_view name, const kernels::Stream& stream, const KeyShape& shape);
/// ReSV with any settings. Throws std::invalid_argument for those that no table can have.
RetrieverPtr make_resv(const kernels::Stream& stream, const KeyShape& shape, const ResvSettings& settings);

}  // namespace vigil::retrieval
