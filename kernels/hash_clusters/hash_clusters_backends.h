// The implementations behind hash_clusters.h, which has checked what they are given.
#pragma once

#include "kernels/hash_clusters/hash_clusters.h"

namespace vigil::kernels {
namespace cpu {
void hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count, float* projections,
               std::uint64_t* hashes);
void join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes, const float* projections,
                   std::int64_t first, int threshold, const HashClusters& to);
}  // namespace cpu
namespace cuda {
void hash_keys(Stream& stream, ConstMatrix keys, const float* planes, std::int64_t count, float* projections,
               std::uint64_t* hashes);
void join_clusters(Stream& stream, ConstMatrix keys, const std::uint64_t* hashes, const float* projections,
                   std::int64_t first, int threshold, const HashClusters& to);
}  // namespace cuda
}  // namespace vigil::kernels
