// Attention with the whole row of scores at hand, in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/device/element.h"

namespace vigil::kernels::reference {

/// One head of one query: Σ_j p_j v_j, and Σ_j p_j |v_j|, with which rounding errors grow.
struct Mixture {
  std::vector<double> value;
  std::vector<double> magnitude;
};

/// softmax(scale q · k_j) over `count` keys; `query(d)`, `key(j, d)` and `value(j, d)` give elements.
template <typename Query, typename Key, typename Value>
Mixture attend(std::int64_t count, std::int64_t head_dim, double scale, const Query& query, const Key& key,
               const Value& value) {
  std::vector<double> scores(static_cast<std::size_t>(count), 0.0);
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t d = 0; d < head_dim; ++d)
      scores[static_cast<std::size_t>(j)] += scale * query(d) * key(j, d);
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (double& score : scores) total += score = std::exp(score - largest);
  Mixture result{std::vector<double>(static_cast<std::size_t>(head_dim)),
                 std::vector<double>(static_cast<std::size_t>(head_dim))};
  for (std::int64_t j = 0; j < count; ++j)
    for (std::int64_t d = 0; d < head_dim; ++d) {
      const double term = scores[static_cast<std::size_t>(j)] / total * value(j, d);
      result.value[static_cast<std::size_t>(d)] += term;
      result.magnitude[static_cast<std::size_t>(d)] += std::abs(term);
    }
  return result;
}

/// Query `i` of the segment, head `head` of q.
inline Mixture paged_attention(ConstMatrix q, const KvLayer& layer, const AttentionSegment& segment,
                               float scale, std::int64_t i, std::int64_t head) {
  const std::int64_t kv_head = head / (q.cols / layer.head_dim / layer.kv_heads);
  const auto stored = [&](std::int64_t j, std::int64_t d, std::int64_t offset) {
    const std::int64_t slot = segment.keys[static_cast<std::size_t>(j)];
    const std::int64_t page = slot / layer.page_tokens;
    const std::int64_t within = (kv_head * layer.page_tokens + slot % layer.page_tokens) * layer.head_dim + d;
    return double{
        element(dense(layer.base, layer.dtype, 1, 1), 0, page * layer.page_stride + offset + within)};
  };
  return attend(
      segment.own[static_cast<std::size_t>(i)] + 1, layer.head_dim, double{scale},
      [&](std::int64_t d) { return double{element(q, segment.first_row + i, head * layer.head_dim + d)}; },
      [&](std::int64_t j, std::int64_t d) { return stored(j, d, 0); },
      [&](std::int64_t j, std::int64_t d) { return stored(j, d, layer.value_offset); });
}

/// Row `i`, head `head`, in the segment of rows [begin, end).
inline Mixture segment_attention(ConstMatrix q, ConstMatrix k, ConstMatrix v, std::int64_t begin,
                                 std::int64_t end, std::int64_t head_dim, float scale, std::int64_t i,
                                 std::int64_t head) {
  const std::int64_t column = head * head_dim;
  return attend(
      end - begin, head_dim, double{scale}, [&](std::int64_t d) { return double{element(q, i, column + d)}; },
      [&](std::int64_t j, std::int64_t d) { return double{element(k, begin + j, column + d)}; },
      [&](std::int64_t j, std::int64_t d) { return double{element(v, begin + j, column + d)}; });
}

}  // namespace vigil::kernels::reference
