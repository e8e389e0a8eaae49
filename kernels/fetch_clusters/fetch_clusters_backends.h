// The implementations behind fetch_clusters.h and pack_clusters.h, which have checked what they are given.
#pragma once

#include "kernels/fetch_clusters/fetch_clusters.h"
#include "kernels/fetch_clusters/pack_clusters.h"

namespace vigil::kernels {
namespace cpu {
void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to);
void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to);
void pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters, PackedForm form,
                   std::byte* to);
}  // namespace cpu
namespace cuda {
void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to);
void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to);
void pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters, PackedForm form,
                   std::byte* to);
}  // namespace cuda
}  // namespace vigil::kernels
