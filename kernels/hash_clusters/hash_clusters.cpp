#include "kernels/hash_clusters/hash_clusters.h"

#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/hash_clusters/hash_clusters_backends.h"
#include "kernels/random/random.h"

namespace vigil::kernels {
namespace {

void check_count(const char* operation, std::int64_t count) {
  if (count < 1 || count > kMostHyperplanes)
    throw std::invalid_argument(std::string(operation) + ": " + std::to_string(count) +
                                " hyperplanes are not between 1 and " + std::to_string(kMostHyperplanes));
}

bool has_numbers(ConstMatrix keys) {
  return keys.dtype == DType::f32 || keys.dtype == DType::bf16;
}

/// In (0, 1).
double uniform(std::uint64_t seed, std::uint64_t index) {
  return (static_cast<double>(random_number(seed, index)) + 1 + 0x1p-24) / 2;
}

}  // namespace

std::vector<float> hyperplanes(std::int64_t count, std::int64_t cols, std::uint64_t seed) {
  check_count("hyperplanes", count);
  if (cols < 1) throw std::invalid_argument("hyperplanes: keys have no elements");
  std::vector<float> normals(static_cast<std::size_t>(count * cols));
  for (std::size_t i = 0; i < normals.size(); ++i) {
    const double radius = std::sqrt(-2 * std::log(uniform(seed, 2 * i)));
    const double angle = 2 * std::numbers::pi * uniform(seed, 2 * i + 1);
    normals[i] = static_cast<float>(std::round(radius * std::cos(angle) * 0x1p16) * 0x1p-16);
  }
  return normals;
}

void hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count, float* projections,
               std::uint64_t* hashes) {
  check_count("hash_keys", count);
  if (!has_numbers(keys) || keys.cols < 1) throw std::invalid_argument("hash_keys: no keys of this type");
  if (keys.rows == 0) return;
  VIGIL_ON_DEVICE(stream, hash_keys(stream, keys, planes, count, projections, hashes));
}

void join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes, const float* projections,
                   std::int64_t first, int threshold, const HashClusters& to) {
  check_count("join_clusters", to.planes);
  if (!has_numbers(keys) || keys.cols != to.cols || to.cols < 1 || to.layers < 1 ||
      keys.rows % to.layers != 0)
    throw std::invalid_argument("join_clusters: keys do not fit the table");
  if (to.capacity < 1 || to.capacity > kMostClusters)
    throw std::invalid_argument("join_clusters: no table of " + std::to_string(to.capacity) + " clusters");
  const std::int64_t count = keys.rows / to.layers;
  if (first < 0 || first + count > to.tokens)
    throw std::invalid_argument("join_clusters: the table has no room for " + std::to_string(first + count) +
                                " tokens");
  if (count == 0) return;
  VIGIL_ON_DEVICE(stream, join_clusters(stream, keys, hashes, projections, first, threshold, to));
}

}  // namespace vigil::kernels
