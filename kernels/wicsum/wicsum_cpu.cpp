#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/wicsum/fixed_point.h"
#include "kernels/wicsum/wicsum_backends.h"

namespace vigil::kernels {
namespace {

/// Clusters that a query is multiplied by at a time.
constexpr std::int64_t kBlock = 64;

/// Sums of a block of clusters, whose keys lie column by column.
VIGIL_SIMD void multiply(const float* q, const float* keys, std::int64_t head_dim, float* sums) {
  std::array<float, kBlock> sum{};
  float* at = sum.data();
  for (std::int64_t d = 0; d < head_dim; ++d) {
#pragma omp simd
    for (std::int64_t c = 0; c < kBlock; ++c) at[c] = __builtin_fmaf(q[d], keys[d * kBlock + c], at[c]);
  }
  for (std::int64_t c = 0; c < kBlock; ++c) sums[c] = at[c];
}

float query(ConstMatrix q, std::int64_t i, std::int64_t j) {
  return q.dtype == DType::f32 ? q.row<float>(i)[j] : to_float(q.row<bf16>(i)[j]);
}

/// The choice of one KV head.
class Choosing {
 public:
  Choosing(ConstMatrix q, const ClusterKeys& keys, std::int64_t kv_head, const WicsumChoice& choice)
      : q_(q),
        keys_(keys),
        choice_(choice),
        kv_head_(kv_head),
        group_(q.cols / keys.head_dim / keys.kv_heads),
        clusters_(*keys.clusters),
        chosen_(static_cast<std::size_t>(clusters_)) {}

  void choose(float scale) {
    if (q_.rows == 0 || clusters_ == 0) return;
    if (choice_.tokens == 0 && wicsum::fixed_ratio(choice_.ratio) == wicsum::kEverything) {
      std::fill(chosen_.begin(), chosen_.end(), char{1});
      return;
    }
    score(scale);
    const bool pooled = choice_.rows == WicsumRows::pooled;
    std::vector<std::int64_t> order(chosen_.size()), weights(order), shares(order);
    for (std::int64_t row = 0; row < q_.rows * group_; ++row) {
      const std::int32_t* scores = scores_.data() + row * clusters_;
      std::copy(scores, scores + clusters_, order.begin());
      const std::int64_t sum = weigh(order, weights);
      if (!pooled) {
        list(order, weights, sum);
        continue;
      }
      const std::int64_t highest = *std::max_element(order.begin(), order.end());
      for (std::size_t c = 0; c < shares.size(); ++c)
        shares[c] += wicsum::fixed_share(wicsum::fixed_exp(highest - order[c]), sum);
    }
    if (!pooled) return;
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < shares.size(); ++c) {
      weights[c] = shares[c] * keys_.counts[c];
      sum += weights[c];
    }
    list(shares, weights, sum);
  }

  void tell(const ClusterSelection& to) const {
    std::int32_t* list = to.clusters + kv_head_ * keys_.capacity;
    std::int32_t count = 0, tokens = 0;
    for (std::int32_t c = 0; c < clusters_; ++c)
      if (chosen_[static_cast<std::size_t>(c)] != 0) {
        list[count++] = c;
        tokens += keys_.counts[c];
      }
    to.count[kv_head_] = count;
    to.tokens[kv_head_] = tokens;
  }

 private:
  void score(float scale) {
    const std::int64_t rows = q_.rows * group_, dim = keys_.head_dim;
    std::vector<float> queries, block(static_cast<std::size_t>(dim * kBlock));
    for (std::int64_t i = 0; i < q_.rows; ++i)
      for (std::int64_t j = 0; j < group_ * dim; ++j)
        queries.push_back(query(q_, i, kv_head_ * group_ * dim + j));
    scores_.resize(static_cast<std::size_t>(rows * clusters_));
    std::array<float, kBlock> sums{};
    for (std::int64_t begin = 0; begin < clusters_; begin += kBlock) {
      const std::int64_t count = std::min(kBlock, clusters_ - begin);
      for (std::int64_t c = 0; c < count; ++c) {
        const float* total = keys_.sums + ((begin + c) * keys_.kv_heads + kv_head_) * dim;
        const auto tokens = static_cast<float>(keys_.counts[begin + c]);
        for (std::int64_t d = 0; d < dim; ++d)
          block[static_cast<std::size_t>(d * kBlock + c)] = total[d] / tokens;
      }
      for (std::int64_t row = 0; row < rows; ++row) {
        multiply(queries.data() + row * dim, block.data(), dim, sums.data());
        std::int32_t* to = scores_.data() + row * clusters_ + begin;
        for (std::int64_t c = 0; c < count; ++c)
          to[c] = wicsum::fixed_score(scale * sums[static_cast<std::size_t>(c)]);
      }
    }
  }

  /// The weights of a row, and their sum.
  std::int64_t weigh(const std::vector<std::int64_t>& scores, std::vector<std::int64_t>& weights) const {
    const std::int64_t highest = *std::max_element(scores.begin(), scores.end());
    std::int64_t sum = 0;
    for (std::size_t c = 0; c < scores.size(); ++c) {
      weights[c] = keys_.counts[c] *
                   (choice_.scores == WicsumScores::raw ? scores[c] : wicsum::fixed_exp(highest - scores[c]));
      sum += weights[c];
    }
    return sum;
  }

  /// Takes the highest from a heap, and stops early.
  void list(const std::vector<std::int64_t>& order, const std::vector<std::int64_t>& weights,
            std::int64_t sum) {
    const std::int64_t threshold =
        choice_.tokens > 0 ? choice_.tokens - 1 : wicsum::part_of(sum, wicsum::fixed_ratio(choice_.ratio));
    heap_.resize(order.size());
    for (std::size_t c = 0; c < heap_.size(); ++c) heap_[c] = c;
    const auto later = [&](std::size_t a, std::size_t b) {
      return order[a] != order[b] ? order[a] < order[b] : a > b;
    };
    std::make_heap(heap_.begin(), heap_.end(), later);
    std::int64_t reached = 0;
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), later);
      const std::size_t c = heap_.back();
      heap_.pop_back();
      chosen_[c] = 1;
      reached += choice_.tokens > 0 ? keys_.counts[c] : weights[c];
      if (reached > threshold) break;
    }
  }

  ConstMatrix q_;
  const ClusterKeys& keys_;
  const WicsumChoice& choice_;
  std::int64_t kv_head_, group_, clusters_;
  std::vector<char> chosen_;
  std::vector<std::int32_t> scores_;
  std::vector<std::size_t> heap_;
};

}  // namespace

void cpu::select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                          const WicsumChoice& choice, const ClusterSelection& to) {
  parallel_for(stream, keys.kv_heads, [&](std::int64_t kv_head) {
    Choosing choosing(q, keys, kv_head, choice);
    choosing.choose(scale);
    choosing.tell(to);
  });
}

}  // namespace vigil::kernels
