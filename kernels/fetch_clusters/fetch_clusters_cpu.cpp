#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"
#include "kernels/packed_kv/packed_kv_backends.h"

namespace vigil::kernels {

void cpu::place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                         const ClusterPieces& pieces, const FetchedLists& to) {
  parallel_for(stream, pieces.kv_heads, [&](std::int64_t head) {
    std::int32_t place = 0, length = 0;
    for (std::int64_t i = 0; i < chosen.count[head]; ++i) {
      to.places[head * clusters + i] = place;
      place += pieces.counts[chosen.clusters[head * clusters + i]];
      if (place <= to.capacity) length = place;
    }
    to.counts[head] = length;
  });
}

void cpu::fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                         std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to) {
  const std::int64_t half = pieces.head_dim / 2;
  parallel_for(stream, pieces.kv_heads, [&](std::int64_t head) {
    Stream here = Stream::cpu(1);
    // The list as a page of one head.
    const auto element = static_cast<std::int64_t>(size_of(to.dtype));
    const std::int64_t skipped = head * to.capacity * pieces.head_dim * element;
    std::byte* keys = static_cast<std::byte*>(to.keys) + skipped;
    const std::int64_t values = static_cast<std::byte*>(to.values) + skipped - keys;
    const KvLayers list{{keys, to.dtype, 1, 0, values / element, to.capacity, 1, pieces.head_dim}, 1, 0};
    std::vector<std::int32_t> slots;
    for (std::int64_t i = 0; i < chosen.count[head]; ++i) {
      const std::int32_t c = chosen.clusters[head * clusters + i];
      const std::int32_t tokens = pieces.counts[c];
      const std::int32_t place = to.places[head * clusters + i];
      if (place + tokens > to.capacity) break;
      slots.resize(static_cast<std::size_t>(tokens));
      std::iota(slots.begin(), slots.end(), place);
      const std::int64_t angles = turn.cos == nullptr ? 0 : turn.first[c] * half;
      cpu::unpack_kv(here, pieces.memory + pieces.begins[c] + head * pieces.piece_bytes(tokens),
                     {pieces.form, 1, 1, pieces.head_dim, tokens}, {0, 0, 0, tokens},
                     turn.cos == nullptr ? nullptr : turn.cos + angles,
                     turn.sin == nullptr ? nullptr : turn.sin + angles, {slots.data(), 0}, list);
    }
  });
}

}  // namespace vigil::kernels
