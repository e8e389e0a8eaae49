#include <algorithm>

#include "kernels/device/cuda.cuh"
#include "kernels/hash_clusters/hash_clusters_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kWarp = 32;
constexpr int kHashThreads = 256;
/// Keys that a block hashes, and hyperplanes that a warp multiplies them by at a time: each number is loaded
/// once for so many products.
constexpr int kKeys = 8;
constexpr int kPlanes = 4;

constexpr int kJoinThreads = 1024;
constexpr int kAddThreads = 256;
/// Tokens of a layer that join in one launch.
constexpr std::int64_t kMostTokens = 4096;

/// A block some keys, a lane every 32nd column: the order that hash_clusters.h tells.
template <typename T, int rows>
__global__ void __launch_bounds__(kHashThreads)
    hash(const T* keys, std::int64_t stride, std::int64_t count, int cols, const float* planes, int of_planes,
         float* projections, std::uint64_t* hashes) {
  __shared__ float found[rows][kMostHyperplanes];
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const std::int64_t first = std::int64_t{blockIdx.x} * rows;
  const T* key[rows];
#pragma unroll
  for (int i = 0; i < rows; ++i) key[i] = keys + min(first + i, count - 1) * stride;
  for (int begin = warp * kPlanes; begin < of_planes; begin += kHashThreads / kWarp * kPlanes) {
    const float* plane[kPlanes];
#pragma unroll
    for (int p = 0; p < kPlanes; ++p)
      plane[p] = planes + static_cast<std::int64_t>(min(begin + p, of_planes - 1)) * cols;
    float sums[rows][kPlanes] = {};
#pragma unroll 2
    for (int d = lane; d < cols; d += kWarp) {
      float normal[kPlanes];
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) normal[p] = plane[p][d];
#pragma unroll
      for (int i = 0; i < rows; ++i) {
        const float value = cuda::number(key[i][d]);
#pragma unroll
        for (int p = 0; p < kPlanes; ++p) sums[i][p] = __fmaf_rn(value, normal[p], sums[i][p]);
      }
    }
#pragma unroll
    for (int i = 0; i < rows; ++i)
#pragma unroll
      for (int p = 0; p < kPlanes; ++p) {
        const float sum = cuda::warp_sum(sums[i][p]);
        if (lane == 0 && begin + p < of_planes) found[i][begin + p] = sum;
      }
  }
  __syncthreads();
  for (int i = warp; i < rows && first + i < count; i += kHashThreads / kWarp) {
    std::uint64_t bits = 0;
    for (int p = 0; p < of_planes; p += kWarp) {
      const bool there = p + lane < of_planes;
      const float value = there ? found[i][p + lane] : 0.0F;
      if (there) projections[(first + i) * of_planes + p + lane] = value;
      bits |= std::uint64_t{__ballot_sync(0xffffffffU, value > 0.0F)} << static_cast<unsigned>(p);
    }
    if (lane == 0) hashes[first + i] = bits;
  }
}

/// Tokens [begin, begin + count) of the `of` that each layer has in a call.
struct Joining {
  const std::uint64_t* hashes;
  const float* projections;
  std::int64_t of, begin, count, first;
};

/// A block a layer: its tokens one after the other, the clusters that each is compared with side by side.
template <ClusterBits compared>
__global__ void __launch_bounds__(kJoinThreads) join(Joining tokens, int threshold, HashClusters to) {
  __shared__ unsigned nearest[2][kJoinThreads / kWarp];
  const std::int64_t layer = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int planes = static_cast<int>(to.planes);
  std::uint64_t* bits = to.bits + layer * to.capacity;
  int clusters = to.clusters[layer];
  for (std::int64_t i = 0; i < tokens.count; ++i) {
    const std::int64_t row = layer * tokens.of + tokens.begin + i;
    const std::uint64_t hash = tokens.hashes[row];
    // The places that differ above the cluster's number: the smallest is the nearest, of equal ones the
    // oldest.
    unsigned mine = 0xffffffffU;
#pragma unroll 4
    for (int c = static_cast<int>(threadIdx.x); c < clusters; c += kJoinThreads)
      mine = min(mine, static_cast<unsigned>(__popcll(bits[c] ^ hash)) << 24U | static_cast<unsigned>(c));
    mine = __reduce_min_sync(0xffffffffU, mine);
    if (lane == 0) nearest[i % 2][warp] = mine;
    __syncthreads();
    mine = __reduce_min_sync(0xffffffffU, nearest[i % 2][lane]);
    const bool begins =
        clusters == 0 || (static_cast<int>(mine >> 24U) >= threshold && clusters < to.capacity);
    const int cluster = begins ? clusters : static_cast<int>(mine & 0xffffffU);
    clusters += begins ? 1 : 0;
    if (threadIdx.x == 0) {
      to.assigned[layer * to.tokens + tokens.first + i] = cluster;
      if (begins) bits[cluster] = hash;
    }
    if constexpr (compared == ClusterBits::mean) {
      if (warp == 0) {
        float* sums = to.projections + (layer * to.capacity + cluster) * planes;
        std::uint64_t now = 0;
        for (int p = 0; p < planes; p += kWarp) {
          float sum = 0;
          if (p + lane < planes) {
            const float own = tokens.projections[row * planes + p + lane];
            sum = begins ? own : sums[p + lane] + own;
            sums[p + lane] = sum;
          }
          now |= std::uint64_t{__ballot_sync(0xffffffffU, sum > 0.0F)} << static_cast<unsigned>(p);
        }
        if (lane == 0 && !begins) bits[cluster] = now;
      }
    }
    __syncthreads();
  }
  if (threadIdx.x == 0) to.clusters[layer] = clusters;
}

/// A block a token: the first one of its cluster among these adds the keys of all of them, in their order.
template <typename T>
__global__ void __launch_bounds__(kAddThreads)
    add(const T* keys, std::int64_t stride, Joining tokens, HashClusters to) {
  __shared__ std::int16_t members[kMostTokens];
  __shared__ int count;
  const std::int64_t layer = blockIdx.y;
  const int own = static_cast<int>(blockIdx.x);
  const int all = static_cast<int>(tokens.count);
  const std::int32_t* assigned = to.assigned + layer * to.tokens + tokens.first;
  const std::int32_t cluster = assigned[own];
  bool earlier = false;
  for (int i = static_cast<int>(threadIdx.x); i < own; i += kAddThreads) earlier |= assigned[i] == cluster;
  if (__syncthreads_or(earlier ? 1 : 0) != 0) return;
  if (threadIdx.x < kWarp) {
    int found = 0;
    for (int begin = own; begin < all; begin += kWarp) {
      const int i = begin + static_cast<int>(threadIdx.x);
      const bool in = i < all && assigned[i] == cluster;
      const unsigned there = __ballot_sync(0xffffffffU, in);
      if (in) members[found + __popc(there & ((1U << threadIdx.x) - 1))] = static_cast<std::int16_t>(i);
      found += __popc(there);
    }
    if (threadIdx.x == 0) count = found;
  }
  __syncthreads();
  const std::int64_t at = layer * to.capacity + cluster;
  const bool begins = to.counts[at] == 0;
  const T* mine = keys + (layer * tokens.of + tokens.begin) * stride;
  float* sums = to.sums + at * to.cols;
  for (int d = static_cast<int>(threadIdx.x); d < to.cols; d += kAddThreads) {
    float sum = begins ? cuda::number(mine[own * stride + d]) : sums[d];
#pragma unroll 8
    for (int i = begins ? 1 : 0; i < count; ++i) sum += cuda::number(mine[members[i] * stride + d]);
    sums[d] = sum;
  }
  __syncthreads();
  if (threadIdx.x == 0) to.counts[at] += count;
}

template <typename T, int rows>
void hash_rows(cudaStream_t queue, ConstMatrix keys, const float* planes, std::int64_t count,
               float* projections, std::uint64_t* hashes) {
  hash<T, rows><<<cuda::blocks_for(keys.rows, rows), kHashThreads, 0, queue>>>(
      keys.row<T>(0), keys.stride, keys.rows, static_cast<int>(keys.cols), planes, static_cast<int>(count),
      projections, hashes);
}

}  // namespace

void cuda::hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count,
                     float* projections, std::uint64_t* hashes) {
  const cudaStream_t queue = queue_of(stream);
  // Few keys: more blocks, rather than each number fewer times.
  const bool few = keys.rows < std::int64_t{2} * kKeys * stream.cuda_queue().multiprocessors();
  with_type(keys.dtype, [&](auto type) {
    using T = decltype(type);
    if (few) {
      hash_rows<T, 2>(queue, keys, planes, count, projections, hashes);
    } else {
      hash_rows<T, kKeys>(queue, keys, planes, count, projections, hashes);
    }
  });
  check_launch("hash_keys");
}

void cuda::join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes,
                         const float* projections, std::int64_t first, int threshold,
                         const HashClusters& to) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t of = keys.rows / to.layers;
  for (std::int64_t begin = 0; begin < of; begin += kMostTokens) {
    const Joining tokens{hashes, projections, of, begin, std::min(kMostTokens, of - begin), first + begin};
    const auto layers = static_cast<unsigned>(to.layers);
    if (to.compared == ClusterBits::mean) {
      join<ClusterBits::mean><<<layers, kJoinThreads, 0, queue>>>(tokens, threshold, to);
    } else {
      join<ClusterBits::first><<<layers, kJoinThreads, 0, queue>>>(tokens, threshold, to);
    }
    with_type(keys.dtype, [&](auto type) {
      using T = decltype(type);
      add<T><<<dim3(static_cast<unsigned>(tokens.count), layers), kAddThreads, 0, queue>>>(
          keys.row<T>(0), keys.stride, tokens, to);
    });
  }
  check_launch("join_clusters");
}

}  // namespace vigil::kernels
