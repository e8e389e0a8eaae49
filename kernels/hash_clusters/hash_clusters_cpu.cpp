#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/hash_clusters/hash_clusters_backends.h"

namespace vigil::kernels {
namespace {

constexpr std::int64_t kLanes = 32;

template <typename T>
void as_floats(const T* from, std::int64_t count, float* to) {
  for (std::int64_t d = 0; d < count; ++d) to[d] = to_float(from[d]);
}

void key_of(ConstMatrix keys, std::int64_t row, float* to) {
  if (keys.dtype == DType::f32) {
    as_floats(keys.row<float>(row), keys.cols, to);
  } else {
    as_floats(keys.row<bf16>(row), keys.cols, to);
  }
}

VIGIL_SIMD float project(const float* key, const float* plane, std::int64_t cols) {
  std::array<float, kLanes> sums{};
  float* sum = sums.data();
  const std::int64_t whole = cols / kLanes * kLanes;
  for (std::int64_t d = 0; d < whole; d += kLanes) {
#pragma omp simd
    for (std::int64_t lane = 0; lane < kLanes; ++lane)
      sum[lane] = __builtin_fmaf(key[d + lane], plane[d + lane], sum[lane]);
  }
  for (std::int64_t d = whole; d < cols; ++d)
    sum[d - whole] = __builtin_fmaf(key[d], plane[d], sum[d - whole]);
  for (std::int64_t half = kLanes / 2; half > 0; half /= 2)
    for (std::int64_t lane = 0; lane < half; ++lane) sum[lane] += sum[lane + half];
  return sum[0];
}

std::uint64_t hash_of(const float* projections, std::int64_t count) {
  std::uint64_t hash = 0;
  for (std::int64_t p = 0; p < count; ++p)
    if (projections[p] > 0) hash |= std::uint64_t{1} << static_cast<unsigned>(p);
  return hash;
}

/// The places that differ, above the number of the cluster where these are fewest.
VIGIL_SIMD std::uint64_t nearest(const std::uint64_t* bits, std::int64_t count, std::uint64_t hash) {
  std::uint64_t best = ~std::uint64_t{0};
  for (std::int64_t c = 0; c < count; ++c) {
    const std::uint64_t mine =
        static_cast<std::uint64_t>(std::popcount(bits[c] ^ hash)) << 32U | static_cast<std::uint64_t>(c);
    best = mine < best ? mine : best;
  }
  return best;
}

VIGIL_SIMD void add(const float* from, std::int64_t count, float* to) {
  for (std::int64_t d = 0; d < count; ++d) to[d] += from[d];
}

}  // namespace

void cpu::hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count,
                    float* projections, std::uint64_t* hashes) {
  parallel_blocks(stream, keys.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> key(static_cast<std::size_t>(keys.cols));
    for (std::int64_t i = begin; i < end; ++i) {
      key_of(keys, i, key.data());
      for (std::int64_t p = 0; p < count; ++p)
        projections[i * count + p] = project(key.data(), planes + p * keys.cols, keys.cols);
      hashes[i] = hash_of(projections + i * count, count);
    }
  });
}

void cpu::join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes,
                        const float* projections, std::int64_t first, int threshold, const HashClusters& to) {
  const std::int64_t count = keys.rows / to.layers;
  const bool is_of_means = to.compared == ClusterBits::mean;
  parallel_for(stream, to.layers, [&](std::int64_t layer) {
    std::vector<float> key(static_cast<std::size_t>(keys.cols));
    std::uint64_t* bits = to.bits + layer * to.capacity;
    std::int32_t& clusters = to.clusters[layer];
    for (std::int64_t row = layer * count; row < (layer + 1) * count; ++row) {
      const std::uint64_t found = nearest(bits, clusters, hashes[row]);
      const bool begins =
          clusters == 0 || (static_cast<std::int64_t>(found >> 32U) >= threshold && clusters < to.capacity);
      const std::int32_t cluster = begins ? clusters++ : static_cast<std::int32_t>(found & 0xffffffffU);
      to.assigned[layer * to.tokens + first + row - layer * count] = cluster;
      const std::int64_t at = layer * to.capacity + cluster;
      const float* own = is_of_means && projections != nullptr ? projections + row * to.planes : nullptr;
      key_of(keys, row, key.data());
      if (begins) {
        std::copy(key.begin(), key.end(), to.sums + at * to.cols);
        if (own != nullptr) std::copy(own, own + to.planes, to.projections + at * to.planes);
        bits[cluster] = hashes[row];
        to.counts[at] = 1;
        continue;
      }
      add(key.data(), to.cols, to.sums + at * to.cols);
      ++to.counts[at];
      if (own != nullptr) {
        add(own, to.planes, to.projections + at * to.planes);
        bits[cluster] = hash_of(to.projections + at * to.planes, to.planes);
      }
    }
  });
}

}  // namespace vigil::kernels
