// The implementations behind fetch_clusters.h, which has checked what they are given.
#pragma once

#include "kernels/fetch_clusters/fetch_clusters.h"

namespace vigil::kernels {
namespace cpu {
void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to);
void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to);
}  // namespace cpu
namespace cuda {
void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to);
void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to);
}  // namespace cuda
}  // namespace vigil::kernels
