// The implementations behind packed_kv.h, which has checked what they are given.
#pragma once

#include "kernels/packed_kv/packed_kv.h"

namespace vigil::kernels {
namespace cpu {
void pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
             std::int64_t layer, std::int64_t head, std::byte* to);
void unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
               const float* cos, const float* sin, KvSlots slots, const KvLayers& to);
}  // namespace cpu
namespace cuda {
void pack_kv(Stream& stream, const KvLayers& from, KvSlots slots, const PackedShape& shape,
             std::int64_t layer, std::int64_t head, std::byte* to);
void unpack_kv(Stream& stream, const std::byte* from, const PackedShape& shape, const PackedPart& part,
               const float* cos, const float* sin, KvSlots slots, const KvLayers& to);
}  // namespace cuda
}  // namespace vigil::kernels
