// Clusters out of a cache, each in the piece that fetch_clusters brings back: those of many layers at once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/stream.h"
#include "kernels/packed_kv/packed_kv.h"

namespace vigil::kernels {

/// A cluster: some tokens of one layer, and where it goes.
struct ClusterToPack {
  /// In bytes, a multiple of 16; multiples of 128 are written, and read, best.
  std::int64_t begin = 0;
  /// Its tokens are slots[first .. first + tokens); without any it takes no bytes.
  std::int32_t first = 0;
  std::int32_t tokens = 0;
  std::int32_t layer = 0;
};

/// All on the device.
struct ClustersToPack {
  /// [tokens], below 2^31.
  const std::int32_t* slots = nullptr;
  std::int64_t tokens = 0;
  /// [count], in the order of `slots`: each begins where the one before ends, or later.
  const ClusterToPack* clusters = nullptr;
  std::int64_t count = 0;
};

/// Packs the keys and values of clusters, of all heads that the cache has: at to + begin, as ClusterPieces
/// says, byte by byte what pack_kv makes of each cluster and head. No other byte is written. On a GPU it is
/// one launch, however many clusters there are, of whatever length.
///
/// to: on the stream's device, or memory of the host that it can write, at a multiple of 16. Slots, layers
/// and begins are not checked. Throws std::invalid_argument for a cache that is neither f32 nor bf16 or has
/// no heads, heads of an odd width, numbers below 0, memory that begins elsewhere, and more clusters and
/// tokens than a launch can have.
void pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters, PackedForm form,
                   std::byte* to);

}  // namespace vigil::kernels
