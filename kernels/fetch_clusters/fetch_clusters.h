// What was chosen of a long past, brought to the device: of each KV head other clusters, of which the lists
// say that lie on the device, so that nobody asks the host what to copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/dtype.h"
#include "kernels/device/stream.h"
#include "kernels/packed_kv/packed_kv.h"
#include "kernels/wicsum/wicsum.h"

namespace vigil::kernels {

/// The keys and values of one layer's clusters, packed, where the stream's device can read them: in memory of
/// the host that HostMemory gave out, mostly. Borrowed. A cluster lies together, a piece for each KV head:
///
///   memory + begins[c] + h * piece_bytes(counts[c])   the piece of cluster c and KV head h, laid out as
///                                                     PackedShape{form, 1, 1, head_dim, counts[c]}
///
/// Clusters may lie in several such pieces of memory, before and behind `memory`.
struct ClusterPieces {
  const std::byte* memory = nullptr;
  /// [clusters], on the device: multiples of 16; those of 128 are read best.
  const std::int64_t* begins = nullptr;
  /// [clusters], on the device: tokens of each, at least 1.
  const std::int32_t* counts = nullptr;
  PackedForm form = PackedForm::bf16;
  std::int64_t kv_heads = 0;
  /// Even.
  std::int64_t head_dim = 0;

  constexpr std::int64_t piece_bytes(std::int64_t tokens) const {
    return PackedShape{form, 1, 1, head_dim, tokens}.bytes();
  }
};

/// By which keys are turned when they come, as by unpack_kv; none: as they are.
struct ClusterTurn {
  /// f32 [tokens, head_dim / 2], dense: the angles of token i of cluster c in row first[c] + i.
  const float* cos = nullptr;
  const float* sin = nullptr;
  /// [clusters], on the device.
  const std::int32_t* first = nullptr;
};

/// The lists that fetched keys and values become, of one sequence; all on the device. With kv_lists() they
/// are what listed_attention takes.
struct FetchedLists {
  /// [kv_heads, capacity, head_dim], dense, at multiples of 16.
  void* keys = nullptr;
  void* values = nullptr;
  DType dtype = DType::bf16;
  /// Tokens that a list has room for.
  std::int64_t capacity = 0;
  /// [kv_heads]: the length of each list.
  std::int32_t* counts = nullptr;
  /// [kv_heads, clusters]: where in its list each chosen cluster begins.
  std::int32_t* places = nullptr;
};

/// Gives each chosen cluster its place, one after the other as they were chosen, and each list its length. A
/// list ends before the first cluster that it has no room for. `clusters`: of `chosen`, the room of a KV
/// head's list. Nobody waits on the host. Throws std::invalid_argument for shapes of nothing.
void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to);

/// Brings the chosen clusters to their places, element by element what unpack_kv makes of their pieces. What
/// lies in `to` past the lists' ends is left as it is. `chosen`, as place_clusters was given it, and the
/// places and lengths that it made have to be there when it runs. On a GPU it takes up to 16 multiprocessors
/// for itself, or as many as the stream may (Stream::take_multiprocessors): where it runs beside a layer's
/// other work, that has to leave them, since what takes all of them would wait for the fetch to end. Throws
/// std::invalid_argument for lists that are neither f32 nor bf16, an odd head_dim, memory that is not
/// aligned, and one of cos and sin alone.
void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to);

}  // namespace vigil::kernels
