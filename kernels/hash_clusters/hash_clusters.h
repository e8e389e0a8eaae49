// Clusters of keys that are alike: a key is hashed to a bit a hyperplane, and joins the cluster whose bits
// differ least (section IV.B of V-Rex).
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Hyperplanes, at most: a hash is one word.
inline constexpr std::int64_t kMostHyperplanes = 64;
/// Clusters of a layer, at most.
inline constexpr std::int64_t kMostClusters = std::int64_t{1} << 24U;

/// The normals of `count` random hyperplanes, f32 [count, cols] on the host: normally distributed numbers
/// (Box and Muller, 1958, of `random_number`), rounded to multiples of 2^-16 so that the last bits of a
/// platform's logarithm do not show. Throws std::invalid_argument for a count that is not from 1 to
/// kMostHyperplanes, and for no columns.
std::vector<float> hyperplanes(std::int64_t count, std::int64_t cols, std::uint64_t seed);

/// projections[i, p] = Σ_d keys[i, d] planes[p, d], and bit p of hashes[i] = projections[i, p] > 0: what is
/// no number has no bit.
///
/// keys: f32 or bf16 [rows, cols], a token of a layer each, the keys of all KV heads side by side; planes:
/// f32 [count, cols], dense; projections: f32 [rows, count], dense; hashes: [rows]. All of it lies on the
/// stream's device. The sum has one order everywhere, so that bits never differ between devices: 32 sums, of
/// every 32nd column each, by fused multiply and add in f32, and then the upper half of them added to the
/// lower one until one is left. Throws std::invalid_argument for shapes or types that do not fit.
void hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count, float* projections,
               std::uint64_t* hashes);

/// The bits that new tokens are compared with: those of a cluster's first token, or those of its mean key,
/// after each token that joins.
enum class ClusterBits : std::uint8_t { first, mean };

/// The clusters of all layers of one stream of tokens, borrowed, all of it on one device. Of a layer,
/// clusters are numbered as they begin. `counts` are 0 and `clusters` are 0 at first; the rest may hold
/// anything.
struct HashClusters {
  std::int64_t layers = 0;
  /// Elements of a key: kv_heads * head_dim.
  std::int64_t cols = 0;
  std::int64_t planes = 0;
  /// Clusters that a layer has room for, and tokens.
  std::int64_t capacity = 0;
  std::int64_t tokens = 0;
  ClusterBits compared = ClusterBits::first;

  /// f32 [layers, capacity, cols]: the sum of the keys of a cluster's tokens, in their order. The cluster's
  /// key is their mean, sums / counts.
  float* sums = nullptr;
  /// f32 [layers, capacity, planes], only of ClusterBits::mean: the sum of their projections, which has the
  /// signs of the mean key's.
  float* projections = nullptr;
  /// [layers, capacity]
  std::uint64_t* bits = nullptr;
  /// [layers, capacity]: tokens of each cluster.
  std::int32_t* counts = nullptr;
  /// [layers]: how many clusters there are.
  std::int32_t* clusters = nullptr;
  /// [layers, tokens]: the cluster of each token.
  std::int32_t* assigned = nullptr;
};

/// Tokens join clusters one after the other, those of one call, too: a token goes to the cluster whose bits
/// differ from its hash in the fewest places, of equal ones to the oldest, if these are fewer than
/// `threshold`; otherwise it begins one. In a layer without room for another one it goes there all the same.
///
/// keys: f32 or bf16 [layers * count, cols], layer after layer, the tokens [first, first + count) of each;
/// hashes: [layers * count] and projections: [layers * count, planes], as `hash_keys` makes them of these;
/// the latter are looked at only for ClusterBits::mean. Throws std::invalid_argument for shapes or types that
/// do not fit, and for tokens past the table's.
void join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes, const float* projections,
                   std::int64_t first, int threshold, const HashClusters& to);

}  // namespace vigil::kernels
