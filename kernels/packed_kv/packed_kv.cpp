#include "kernels/packed_kv/packed_kv.h"

#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/packed_kv/packed_kv_backends.h"

namespace vigil::kernels {
namespace {

void check(const char* what, const KvLayers& cache, const PackedShape& shape, std::int64_t layer,
           std::int64_t head, const std::byte* packed) {
  const auto refuse = [what](const char* why) {
    throw std::invalid_argument(std::string(what) + ": " + why);
  };
  const KvLayer& first = cache.first;
  if ((first.dtype != DType::f32 && first.dtype != DType::bf16) || first.kv_heads <= 0 ||
      first.page_tokens <= 0 || cache.count < 0)
    refuse("the cache has no keys that can be packed");
  if (shape.layers < 0 || shape.kv_heads <= 0 || shape.tokens < 0) refuse("a shape without room");
  if (shape.head_dim <= 0 || shape.head_dim % 2 != 0) refuse("heads of an odd width");
  if (first.head_dim != shape.head_dim) refuse("the heads of the cache have another width");
  if (layer < 0 || cache.count > shape.layers - layer) refuse("layers that are not in the shape");
  if (head < 0 || first.kv_heads > shape.kv_heads - head) refuse("heads that are not in the shape");
  if (reinterpret_cast<std::uintptr_t>(packed) % kPackedAlignment != 0)
    refuse("packed memory that does not begin at a multiple of 16");
}

}  // namespace

void pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
             std::int64_t layer, std::int64_t head, std::byte* to) {
  check("pack_kv", from, shape, layer, head, to);
  if (from.count == 0 || shape.tokens == 0) return;
  VIGIL_ON_DEVICE(stream, pack_kv(stream, from, slots, shape, layer, head, to));
}

void unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
               const float* cos, const float* sin, KvSlots slots, const KvLayers& to) {
  check("unpack_kv", to, shape, part.layer, part.head, from);
  if (part.token < 0 || part.count < 0 || part.count > shape.tokens - part.token)
    throw std::invalid_argument("unpack_kv: tokens that are not in the shape");
  if ((cos == nullptr) != (sin == nullptr))
    throw std::invalid_argument("unpack_kv: cosines without sines, or sines without cosines");
  if (to.count == 0 || part.count == 0) return;
  VIGIL_ON_DEVICE(stream, unpack_kv(stream, from, shape, part, cos, sin, slots, to));
}

}  // namespace vigil::kernels
