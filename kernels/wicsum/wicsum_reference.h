// wicsum.h as it is written there: everything sorted, and one sum after the other.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "kernels/device/element.h"
#include "kernels/wicsum/fixed_point.h"
#include "kernels/wicsum/wicsum.h"

namespace vigil::kernels::reference {

/// Of token i's query head and a cluster.
inline std::int32_t cluster_score(ConstMatrix q, std::int64_t i, std::int64_t head, const ClusterKeys& keys,
                                  std::int64_t cluster, float scale) {
  const std::int64_t kv_head = head / (q.cols / keys.head_dim / keys.kv_heads);
  float sum = 0;
  for (std::int64_t d = 0; d < keys.head_dim; ++d) {
    const float total = keys.sums[cluster * keys.kv_heads * keys.head_dim + kv_head * keys.head_dim + d];
    sum = std::fma(element(q, i, head * keys.head_dim + d), total / static_cast<float>(keys.counts[cluster]),
                   sum);
  }
  return wicsum::fixed_score(scale * sum);
}

/// The clusters of the shortest list, by descending `order`, whose weights exceed `threshold`; all if none
/// does.
inline std::vector<std::size_t> shortest_list(const std::vector<std::int64_t>& order,
                                              const std::vector<std::int64_t>& weights,
                                              std::int64_t threshold) {
  std::vector<std::size_t> list(order.size());
  std::iota(list.begin(), list.end(), std::size_t{0});
  std::stable_sort(list.begin(), list.end(),
                   [&](std::size_t a, std::size_t b) { return order[a] > order[b]; });
  std::int64_t sum = 0;
  for (std::size_t t = 0; t < list.size(); ++t) {
    sum += weights[list[t]];
    if (sum > threshold) {
      list.resize(t + 1);
      break;
    }
  }
  return list;
}

/// Of one KV head, ascending.
inline std::vector<std::int32_t> chosen_clusters(ConstMatrix q, const ClusterKeys& keys, std::int64_t kv_head,
                                                 float scale, const WicsumChoice& choice) {
  const auto clusters = static_cast<std::size_t>(*keys.clusters);
  const std::int64_t heads = q.cols / keys.head_dim, group = heads / keys.kv_heads;
  std::vector<std::int64_t> tokens(keys.counts, keys.counts + clusters);
  std::vector<std::int64_t> pooled(clusters);
  std::vector<bool> chosen(clusters);
  const auto choose = [&](const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& weights) {
    const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
    const bool all = choice.tokens == 0 && wicsum::fixed_ratio(choice.ratio) == wicsum::kEverything;
    for (const std::size_t cluster :
         choice.tokens > 0
             ? shortest_list(order, tokens, choice.tokens - 1)
             : shortest_list(order, weights, wicsum::part_of(sum, wicsum::fixed_ratio(choice.ratio))))
      chosen[cluster] = true;
    if (all) chosen.assign(clusters, true);
  };
  for (std::int64_t i = 0; i < q.rows; ++i)
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      std::vector<std::int64_t> scores, weights;
      for (std::size_t c = 0; c < clusters; ++c)
        scores.push_back(cluster_score(q, i, head, keys, static_cast<std::int64_t>(c), scale));
      const std::int64_t highest = scores.empty() ? 0 : *std::max_element(scores.begin(), scores.end());
      for (std::size_t c = 0; c < clusters; ++c)
        weights.push_back(tokens[c] * (choice.scores == WicsumScores::raw
                                           ? scores[c]
                                           : wicsum::fixed_exp(highest - scores[c])));
      if (choice.rows == WicsumRows::united) {
        choose(scores, weights);
      } else {
        const std::int64_t sum = std::accumulate(weights.begin(), weights.end(), std::int64_t{0});
        for (std::size_t c = 0; c < clusters; ++c)
          pooled[c] += wicsum::fixed_share(wicsum::fixed_exp(highest - scores[c]), sum);
      }
    }
  if (choice.rows == WicsumRows::pooled && q.rows > 0) {
    std::vector<std::int64_t> weights;
    for (std::size_t c = 0; c < clusters; ++c) weights.push_back(pooled[c] * tokens[c]);
    choose(pooled, weights);
  }
  std::vector<std::int32_t> list;
  for (std::size_t c = 0; c < clusters; ++c)
    if (chosen[c]) list.push_back(static_cast<std::int32_t>(c));
  return list;
}

}  // namespace vigil::kernels::reference
