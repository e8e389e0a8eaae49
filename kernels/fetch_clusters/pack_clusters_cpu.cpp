#include "kernels/device/cpu.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"
#include "kernels/packed_kv/packed_kv_backends.h"

namespace vigil::kernels {

void cpu::pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters, PackedForm form,
                        std::byte* to) {
  const std::int64_t heads = from.first.kv_heads;
  const auto element = static_cast<std::int64_t>(size_of(from.first.dtype));
  parallel_for(stream, clusters.count * heads, [&](std::int64_t task) {
    const ClusterToPack& cluster = clusters.clusters[task / heads];
    Stream here = Stream::cpu(1);
    // A layer of a cache that has this head alone.
    KvLayers one = from;
    one.first.base = static_cast<std::byte*>(from.first.base) +
                     (cluster.layer * from.stride + from.first.offset(0, task % heads)) * element;
    one.first.kv_heads = 1;
    one.count = 1;
    const PackedShape piece{form, 1, 1, from.first.head_dim, cluster.tokens};
    cpu::pack_kv(here, one, {clusters.slots + cluster.first, 0}, piece, 0, 0,
                 to + cluster.begin + task % heads * piece.bytes());
  });
}

}  // namespace vigil::kernels
