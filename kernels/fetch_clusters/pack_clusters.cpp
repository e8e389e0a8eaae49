#include "kernels/fetch_clusters/pack_clusters.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/fetch_clusters/fetch_clusters_backends.h"

namespace vigil::kernels {

void pack_clusters(Stream& stream, const KvLayers& from, const ClustersToPack& clusters, PackedForm form,
                   std::byte* to) {
  const auto refuse = [](const char* why) {
    throw std::invalid_argument(std::string("pack_clusters: ") + why);
  };
  const KvLayer& first = from.first;
  if ((first.dtype != DType::f32 && first.dtype != DType::bf16) || first.kv_heads < 1 ||
      first.page_tokens < 1)
    refuse("the cache has no keys that can be packed");
  if (first.head_dim < 1 || first.head_dim % 2 != 0) refuse("heads of an odd width");
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  if (clusters.count < 0 || clusters.tokens < 0) refuse("fewer than no clusters, or tokens");
  // Blocks of tokens, at most: a launch has one for each key or value head.
  if (clusters.tokens > kMost || clusters.count > kMost ||
      clusters.count + clusters.tokens / kPackedBlock > kMost / 2 / first.kv_heads)
    refuse("too many clusters");
  if (reinterpret_cast<std::uintptr_t>(to) % kPackedAlignment != 0)
    refuse("memory that does not begin at a multiple of 16");
  if (clusters.count == 0 || clusters.tokens == 0) return;
  VIGIL_ON_DEVICE(stream, pack_clusters(stream, from, clusters, form, to));
}

}  // namespace vigil::kernels
