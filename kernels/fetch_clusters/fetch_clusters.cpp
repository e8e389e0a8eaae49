#include "kernels/fetch_clusters/fetch_clusters.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"

namespace vigil::kernels {
namespace {

void check_lists(const char* what, std::int64_t clusters, const ClusterPieces& pieces,
                 const FetchedLists& to) {
  const auto refuse = [what](const char* why) {
    throw std::invalid_argument(std::string(what) + ": " + why);
  };
  if (pieces.kv_heads < 1 || clusters < 1) refuse("no heads, or no clusters");
  if (pieces.kv_heads * clusters > std::numeric_limits<std::int32_t>::max()) refuse("too many clusters");
  if (to.capacity < 0 || to.capacity > std::numeric_limits<std::int32_t>::max())
    refuse("lists without room, or with too much of it");
  if (to.counts == nullptr || to.places == nullptr) refuse("lists without lengths or places");
}

bool begins_at_16(const void* memory) {
  return reinterpret_cast<std::uintptr_t>(memory) % kPackedAlignment == 0;
}

}  // namespace

void place_clusters(Stream& stream, const ClusterSelection& chosen, std::int64_t clusters,
                    const ClusterPieces& pieces, const FetchedLists& to) {
  check_lists("place_clusters", clusters, pieces, to);
  VIGIL_ON_DEVICE(stream, place_clusters(stream, chosen, clusters, pieces, to));
}

void fetch_clusters(Stream& stream, const ClusterPieces& pieces, const ClusterSelection& chosen,
                    std::int64_t clusters, const ClusterTurn& turn, const FetchedLists& to) {
  check_lists("fetch_clusters", clusters, pieces, to);
  if (to.dtype != DType::f32 && to.dtype != DType::bf16)
    throw std::invalid_argument("fetch_clusters: lists that are neither f32 nor bf16");
  if (pieces.head_dim < 1 || pieces.head_dim % 2 != 0)
    throw std::invalid_argument("fetch_clusters: heads of an odd width");
  if (!begins_at_16(pieces.memory) || !begins_at_16(to.keys) || !begins_at_16(to.values))
    throw std::invalid_argument("fetch_clusters: memory that does not begin at a multiple of 16");
  if ((turn.cos == nullptr) != (turn.sin == nullptr) || (turn.cos != nullptr && turn.first == nullptr))
    throw std::invalid_argument("fetch_clusters: cosines, sines or their rows are missing");
  VIGIL_ON_DEVICE(stream, fetch_clusters(stream, pieces, chosen, clusters, turn, to));
}

}  // namespace vigil::kernels
