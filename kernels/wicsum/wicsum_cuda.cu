#include <algorithm>

#include <cub/block/block_scan.cuh>

#include "kernels/device/cuda.cuh"
#include "kernels/wicsum/fixed_point.h"
#include "kernels/wicsum/wicsum_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kWarp = 32;
constexpr unsigned kAll = 0xffffffffU;
constexpr int kScoreThreads = 256;
/// Rows and clusters whose products a block adds up, so many columns at a time.
constexpr int kRows = 64, kClusters = 32, kColumns = 32;
constexpr int kChooseThreads = 512;
constexpr int kWarps = kChooseThreads / kWarp;
constexpr int kPoolThreads = 256;
constexpr int kTellThreads = 1024;
/// Of scores, before fewer KV heads are looked at at a time.
constexpr std::int64_t kMostBytes = std::int64_t{64} << 20U;

/// Some KV heads, from `first` on, and their scores, [heads, rows, capacity].
struct Scores {
  std::int32_t* scores;
  std::int64_t first, rows;
  ClusterKeys keys;

  __device__ std::int32_t* row(std::int64_t head, std::int64_t row) const {
    return scores + (head * rows + row) * keys.capacity;
  }
  __device__ int clusters() const {
    return static_cast<int>(min(std::int64_t{*keys.clusters}, keys.capacity));
  }
};

/// A block a tile of one KV head's rows and clusters, a thread four times two of them. Row i * group + h is
/// query head h of token i.
template <typename T>
__global__ void __launch_bounds__(kScoreThreads)
    score(const T* q, std::int64_t stride, int group, float scale, Scores to) {
  __shared__ float queries[kRows][kColumns + 1];
  __shared__ float means[kClusters][kColumns + 1];
  const int clusters = to.clusters();
  const int first_cluster = static_cast<int>(blockIdx.x) * kClusters;
  if (first_cluster >= clusters) return;
  const int first_row = static_cast<int>(blockIdx.y) * kRows;
  const std::int64_t head = to.first + blockIdx.z;
  const int dim = static_cast<int>(to.keys.head_dim);
  const int x = static_cast<int>(threadIdx.x) % 16;
  const int y = static_cast<int>(threadIdx.x) / 16;
  float sums[kRows / 16][kClusters / 16] = {};
  for (int begin = 0; begin < dim; begin += kColumns) {
    const int columns = min(kColumns, dim - begin);
    for (int at = static_cast<int>(threadIdx.x); at < kRows * kColumns; at += kScoreThreads) {
      const int row = first_row + at / kColumns, column = at % kColumns;
      const bool there = row < to.rows && column < columns;
      queries[at / kColumns][column] =
          there ? cuda::number(q[row / group * stride + (head * group + row % group) * dim + begin + column])
                : 0.0F;
    }
    for (int at = static_cast<int>(threadIdx.x); at < kClusters * kColumns; at += kScoreThreads) {
      const int cluster = first_cluster + at / kColumns, column = at % kColumns;
      const bool there = cluster < clusters && column < columns;
      means[at / kColumns][column] =
          there ? __fdiv_rn(to.keys.sums[(cluster * to.keys.kv_heads + head) * dim + begin + column],
                            static_cast<float>(to.keys.counts[cluster]))
                : 0.0F;
    }
    __syncthreads();
#pragma unroll 8
    for (int d = 0; d < columns; ++d) {
      float mean[kClusters / 16];
#pragma unroll
      for (int c = 0; c < kClusters / 16; ++c) mean[c] = means[x + 16 * c][d];
#pragma unroll
      for (int r = 0; r < kRows / 16; ++r) {
        const float query = queries[y + 16 * r][d];
#pragma unroll
        for (int c = 0; c < kClusters / 16; ++c) sums[r][c] = __fmaf_rn(query, mean[c], sums[r][c]);
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int r = 0; r < kRows / 16; ++r) {
    const int row = first_row + y + 16 * r;
#pragma unroll
    for (int c = 0; c < kClusters / 16; ++c) {
      const int cluster = first_cluster + x + 16 * c;
      if (row < to.rows && cluster < clusters)
        to.row(blockIdx.z, row)[cluster] = wicsum::fixed_score(scale * sums[r][c]);
    }
  }
}

/// What a block's threads make of a number each; every thread gets it.
class BlockTotals {
 public:
  struct Storage {
    std::int64_t of_warps[2][kWarps];
  };
  __device__ explicit BlockTotals(Storage& storage) : storage_(storage) {}

  __device__ std::int64_t sum(std::int64_t value) {
    return total(value, [](std::int64_t a, std::int64_t b) { return a + b; });
  }
  __device__ std::int64_t largest(std::int64_t value) {
    return total(value, [](std::int64_t a, std::int64_t b) { return a > b ? a : b; });
  }

 private:
  template <typename Join>
  __device__ std::int64_t total(std::int64_t value, const Join& join) {
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int offset = kWarp / 2; offset > 0; offset /= 2)
      value = join(value, __shfl_xor_sync(kAll, value, offset));
    // The other half may still be read by who is not so far.
    half_ ^= 1;
    if (lane == 0) storage_.of_warps[half_][threadIdx.x / kWarp] = value;
    __syncthreads();
    value = storage_.of_warps[half_][lane % kWarps];
#pragma unroll
    for (int offset = kWarps / 2; offset > 0; offset /= 2)
      value = join(value, __shfl_xor_sync(kAll, value, offset));
    return value;
  }

  Storage& storage_;
  int half_ = 0;
};

/// A row's scores, and what its clusters count.
struct RowList {
  const std::int32_t* scores;
  const std::int32_t* counts;
  std::int64_t highest;
  WicsumScores kind;
  bool by_tokens;

  __device__ std::int64_t order(int c) const { return scores[c]; }
  __device__ std::int64_t weight(int c) const {
    if (by_tokens) return counts[c];
    return (kind == WicsumScores::raw ? scores[c] : wicsum::fixed_exp(highest - scores[c])) *
           std::int64_t{counts[c]};
  }
};

/// The shares of all rows, of one token of each cluster.
struct PooledList {
  const std::int64_t* shares;
  const std::int32_t* counts;
  bool by_tokens;

  __device__ std::int64_t order(int c) const { return shares[c]; }
  __device__ std::int64_t weight(int c) const { return (by_tokens ? 1 : shares[c]) * counts[c]; }
};

template <typename Visit>
__device__ __forceinline__ void each_cluster(int clusters, const Visit& visit) {
  for (int c = static_cast<int>(threadIdx.x); c < clusters; c += kChooseThreads) visit(c);
}

/// Marks the shortest list whose weights exceed the threshold, of clusters whose order is at least `lowest`
/// and whose weights are not negative; all clusters if none does. Nothing is sorted: the order of the list's
/// last cluster is looked for by halves.
template <typename List>
__device__ void mark(const List& list, int clusters, std::int64_t lowest, std::int64_t highest,
                     std::int64_t threshold, std::uint8_t* chosen, BlockTotals& totals) {
  using Scan = cub::BlockScan<std::int64_t, kChooseThreads>;
  __shared__ typename Scan::TempStorage scan;
  const auto between = [&](std::int64_t low, std::int64_t high) {
    std::int64_t sum = 0;
    each_cluster(clusters, [&](int c) {
      const std::int64_t order = list.order(c);
      if (order >= low && order < high) sum += list.weight(c);
    });
    return totals.sum(sum);
  };
  if (between(lowest, highest + 1) <= threshold) {
    each_cluster(clusters, [&](int c) { chosen[c] = 1; });
    return;
  }
  // From `low` on the weights exceed the threshold; from `high` on they are `above` and do not.
  std::int64_t low = lowest;
  std::int64_t high = highest + 1;
  std::int64_t above = 0;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::int64_t sum = above + between(middle, high);
    if (sum > threshold) {
      low = middle;
    } else {
      high = middle;
      above = sum;
    }
  }
  each_cluster(clusters, [&](int c) {
    if (list.order(c) > low) chosen[c] = 1;
  });
  // Of those at the end, as many as it takes.
  for (int begin = 0; begin < clusters && above <= threshold; begin += kChooseThreads) {
    const int c = begin + static_cast<int>(threadIdx.x);
    const bool at_end = c < clusters && list.order(c) == low;
    if (__syncthreads_or(at_end ? 1 : 0) == 0) continue;
    std::int64_t before = 0;
    std::int64_t sum = 0;
    Scan(scan).ExclusiveSum(at_end ? list.weight(c) : 0, before, sum);
    if (at_end && above + before <= threshold) chosen[c] = 1;
    above += sum;
    __syncthreads();
  }
}

struct Share {
  std::int64_t ratio, tokens;

  __device__ std::int64_t of(std::int64_t sum) const {
    return tokens > 0 ? tokens - 1 : wicsum::part_of(sum, ratio);
  }
};

/// A row's highest score, and with it the sum of its weights.
__device__ std::int64_t measure(RowList& list, int clusters, BlockTotals& totals) {
  std::int64_t highest = INT32_MIN;
  each_cluster(clusters, [&](int c) { highest = max(highest, list.order(c)); });
  list.highest = totals.largest(highest);
  std::int64_t sum = 0;
  each_cluster(clusters, [&](int c) { sum += list.weight(c); });
  return totals.sum(sum);
}

/// A block a row of a KV head.
__global__ void __launch_bounds__(kChooseThreads)
    choose_rows(Scores from, WicsumScores kind, Share share, std::uint8_t* chosen) {
  __shared__ BlockTotals::Storage storage;
  BlockTotals totals(storage);
  const int clusters = from.clusters();
  if (clusters == 0) return;
  chosen += (from.first + blockIdx.y) * from.keys.capacity;
  RowList list{from.row(blockIdx.y, blockIdx.x), from.keys.counts, 0, kind, share.tokens > 0};
  const std::int64_t threshold = share.of(measure(list, clusters, totals));
  if (list.by_tokens) {
    mark(list, clusters, INT32_MIN, list.highest, threshold, chosen, totals);
  } else if (kind == WicsumScores::exp) {
    mark(list, clusters, list.highest - wicsum::kLowest, list.highest, threshold, chosen, totals);
  } else if (list.highest > 0) {
    // Weights add up as long as scores are above 0, and the first one exceeds what is below.
    mark(list, clusters, 1, list.highest, max(threshold, std::int64_t{0}), chosen, totals);
  } else {
    std::int64_t first = -clusters;
    each_cluster(clusters, [&](int c) {
      if (list.order(c) == list.highest) first = max(first, -std::int64_t{c});
    });
    const auto only = static_cast<int>(-totals.largest(first));
    if (list.weight(only) > threshold) {
      if (threadIdx.x == 0) chosen[only] = 1;
    } else {
      each_cluster(clusters, [&](int c) { chosen[c] = 1; });
    }
  }
}

struct RowTotal {
  std::int64_t highest, sum;
};

/// A block a row.
__global__ void __launch_bounds__(kChooseThreads) measure_rows(Scores from, RowTotal* to) {
  __shared__ BlockTotals::Storage storage;
  BlockTotals totals(storage);
  const int clusters = from.clusters();
  RowList list{from.row(blockIdx.y, blockIdx.x), from.keys.counts, 0, WicsumScores::exp, false};
  const std::int64_t sum = measure(list, clusters, totals);
  if (threadIdx.x == 0) to[blockIdx.y * from.rows + blockIdx.x] = {list.highest, sum};
}

/// A thread a cluster of a KV head.
__global__ void __launch_bounds__(kPoolThreads)
    pool(Scores from, const RowTotal* rows, std::int64_t* shares) {
  const int c = static_cast<int>(blockIdx.x * kPoolThreads + threadIdx.x);
  if (c >= from.clusters()) return;
  rows += blockIdx.y * from.rows;
  std::int64_t sum = 0;
#pragma unroll 4
  for (std::int64_t row = 0; row < from.rows; ++row)
    sum += wicsum::fixed_share(wicsum::fixed_exp(rows[row].highest - from.row(blockIdx.y, row)[c]),
                               rows[row].sum);
  shares[blockIdx.y * from.keys.capacity + c] = sum;
}

/// A block a KV head.
__global__ void __launch_bounds__(kChooseThreads)
    choose_pooled(Scores from, const std::int64_t* shares, Share share, std::uint8_t* chosen) {
  __shared__ BlockTotals::Storage storage;
  BlockTotals totals(storage);
  const int clusters = from.clusters();
  if (clusters == 0) return;
  const PooledList list{shares + blockIdx.x * from.keys.capacity, from.keys.counts, share.tokens > 0};
  std::int64_t highest = 0;
  std::int64_t sum = 0;
  each_cluster(clusters, [&](int c) {
    highest = max(highest, list.order(c));
    sum += list.weight(c);
  });
  highest = totals.largest(highest);
  mark(list, clusters, 0, highest, share.of(totals.sum(sum)),
       chosen + (from.first + blockIdx.x) * from.keys.capacity, totals);
}

/// A block a KV head: what is marked as a list.
__global__ void __launch_bounds__(kTellThreads)
    tell(const std::uint8_t* chosen, ClusterKeys keys, bool asked, ClusterSelection to) {
  using Scan = cub::BlockScan<int, kTellThreads>;
  __shared__ typename Scan::TempStorage scan;
  const std::int64_t head = blockIdx.x;
  const int clusters = asked ? static_cast<int>(min(std::int64_t{*keys.clusters}, keys.capacity)) : 0;
  chosen += head * keys.capacity;
  std::int32_t* list = to.clusters + head * keys.capacity;
  int count = 0;
  int tokens = 0;
  for (int begin = 0; begin < clusters; begin += kTellThreads) {
    const int c = begin + static_cast<int>(threadIdx.x);
    const bool in = c < clusters && chosen[c] != 0;
    int before = 0;
    int more = 0;
    Scan(scan).ExclusiveSum(in ? 1 : 0, before, more);
    if (in) {
      list[count + before] = c;
      tokens += keys.counts[c];
    }
    count += more;
    __syncthreads();
  }
  int before = 0;
  int sum = 0;
  Scan(scan).ExclusiveSum(tokens, before, sum);
  if (threadIdx.x == 0) {
    to.count[head] = count;
    to.tokens[head] = sum;
  }
}

/// Pieces of a workspace, one after the other.
class Pieces {
 public:
  template <typename T>
  std::size_t add(std::int64_t count) {
    const std::size_t at = bytes_;
    bytes_ += (static_cast<std::size_t>(count) * sizeof(T) + 255) / 256 * 256;
    return at;
  }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace

void cuda::select_clusters(Stream& stream, ConstMatrix q, const ClusterKeys& keys, float scale,
                           const WicsumChoice& choice, const ClusterSelection& to) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t group = q.cols / keys.head_dim / keys.kv_heads;
  const std::int64_t rows = q.rows * group;
  const std::int64_t most = kMostBytes / (std::max<std::int64_t>(rows, 1) * keys.capacity * 4);
  const std::int64_t heads = std::clamp<std::int64_t>(most, 1, keys.kv_heads);
  const Share share{wicsum::fixed_ratio(choice.ratio), choice.tokens};
  const bool everything = share.tokens == 0 && share.ratio == wicsum::kEverything;

  Pieces pieces;
  const std::size_t chosen_at = pieces.add<std::uint8_t>(keys.kv_heads * keys.capacity);
  const std::size_t totals_at = pieces.add<RowTotal>(heads * rows);
  const std::size_t shares_at = pieces.add<std::int64_t>(heads * keys.capacity);
  const std::size_t scores_at = pieces.add<std::int32_t>(heads * rows * keys.capacity);
  auto* memory =
      static_cast<std::byte*>(stream.cuda_queue().workspace(CudaQueue::Workspace::clusters, pieces.bytes()));
  auto* chosen = reinterpret_cast<std::uint8_t*>(memory + chosen_at);
  auto* totals = reinterpret_cast<RowTotal*>(memory + totals_at);
  auto* shares = reinterpret_cast<std::int64_t*>(memory + shares_at);

  check_cuda(cudaMemsetAsync(chosen, everything ? 1 : 0,
                             static_cast<std::size_t>(keys.kv_heads * keys.capacity), queue),
             "select_clusters");
  for (std::int64_t first = 0; first < keys.kv_heads && rows > 0 && !everything; first += heads) {
    const auto some = static_cast<unsigned>(std::min(heads, keys.kv_heads - first));
    const Scores scores{reinterpret_cast<std::int32_t*>(memory + scores_at), first, rows, keys};
    with_type(q.dtype, [&](auto type) {
      using T = decltype(type);
      score<T><<<dim3(blocks_for(keys.capacity, kClusters), blocks_for(rows, kRows), some), kScoreThreads, 0,
                 queue>>>(q.row<T>(0), q.stride, static_cast<int>(group), scale, scores);
    });
    const dim3 each(static_cast<unsigned>(rows), some);
    if (choice.rows == WicsumRows::united) {
      choose_rows<<<each, kChooseThreads, 0, queue>>>(scores, choice.scores, share, chosen);
      continue;
    }
    measure_rows<<<each, kChooseThreads, 0, queue>>>(scores, totals);
    pool<<<dim3(blocks_for(keys.capacity, kPoolThreads), some), kPoolThreads, 0, queue>>>(scores, totals,
                                                                                          shares);
    choose_pooled<<<some, kChooseThreads, 0, queue>>>(scores, shares, share, chosen);
  }
  tell<<<static_cast<unsigned>(keys.kv_heads), kTellThreads, 0, queue>>>(chosen, keys, rows > 0, to);
  check_launch("select_clusters");
}

}  // namespace vigil::kernels
