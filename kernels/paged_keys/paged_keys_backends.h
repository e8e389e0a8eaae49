// The implementations behind paged_keys.h, which has checked what they are given.
#pragma once

#include "kernels/paged_keys/paged_keys.h"

namespace vigil::kernels {
namespace cpu {
void key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to);
void rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                 const float* sin, const KvLayer& layer);
void read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
               std::int64_t layers, std::int64_t layer_stride, Matrix to);
}  // namespace cpu
namespace cuda {
void key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer, float* to);
void rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                 const float* sin, const KvLayer& layer);
void read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
               std::int64_t layers, std::int64_t layer_stride, Matrix to);
}  // namespace cuda
}  // namespace vigil::kernels
