// hash_clusters.h, token by token as it is written there.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/device/element.h"
#include "kernels/hash_clusters/hash_clusters.h"

namespace vigil::kernels::reference {

/// Of row i and one hyperplane.
inline float projection(ConstMatrix keys, std::int64_t i, const float* plane) {
  std::array<float, 32> sums{};
  for (std::int64_t d = 0; d < keys.cols; ++d) {
    float& sum = sums[static_cast<std::size_t>(d % 32)];
    sum = std::fma(element(keys, i, d), plane[d], sum);
  }
  for (std::size_t half = 16; half > 0; half /= 2)
    for (std::size_t lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  return sums[0];
}

/// The clusters of one layer.
class Clusters {
 public:
  Clusters(ClusterBits compared, std::int64_t capacity, int threshold)
      : compared_(compared), capacity_(static_cast<std::size_t>(capacity)), threshold_(threshold) {}

  /// Of a token of these projections.
  void join(const std::vector<float>& key, const std::vector<float>& projections) {
    const std::uint64_t hash = hash_of(projections);
    std::size_t nearest = 0;
    int fewest = 65;
    for (std::size_t c = 0; c < bits.size(); ++c)
      if (const int differ = std::popcount(bits[c] ^ hash); differ < fewest) {
        fewest = differ;
        nearest = c;
      }
    if (bits.empty() || (fewest >= threshold_ && bits.size() < capacity_)) {
      assigned.push_back(static_cast<std::int32_t>(bits.size()));
      sums.push_back(key);
      projected.push_back(projections);
      bits.push_back(hash);
      counts.push_back(1);
      return;
    }
    assigned.push_back(static_cast<std::int32_t>(nearest));
    ++counts[nearest];
    for (std::size_t d = 0; d < key.size(); ++d) sums[nearest][d] += key[d];
    for (std::size_t p = 0; p < projections.size(); ++p) projected[nearest][p] += projections[p];
    if (compared_ == ClusterBits::mean) bits[nearest] = hash_of(projected[nearest]);
  }

  std::vector<std::vector<float>> sums, projected;
  std::vector<std::uint64_t> bits;
  std::vector<std::int32_t> counts, assigned;

 private:
  static std::uint64_t hash_of(const std::vector<float>& projections) {
    std::uint64_t hash = 0;
    for (std::size_t p = 0; p < projections.size(); ++p)
      if (projections[p] > 0) hash |= std::uint64_t{1} << p;
    return hash;
  }

  ClusterBits compared_;
  std::size_t capacity_;
  int threshold_;
};

}  // namespace vigil::kernels::reference
