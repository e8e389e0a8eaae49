#include "kernels/paged_keys/paged_keys.h"

#include <stdexcept>

#include "kernels/device/dispatch.h"
#include "kernels/paged_keys/paged_keys_backends.h"

namespace vigil::kernels {
namespace {

bool has_keys(const KvLayer& layer) {
  return (layer.dtype == DType::f32 || layer.dtype == DType::bf16) && layer.kv_heads > 0 &&
         layer.head_dim > 0 && layer.page_tokens > 0;
}

}  // namespace

void key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer,
                   float* to) {
  if (!has_keys(layer) || k.dtype != layer.dtype || k.cols != layer.kv_heads * layer.head_dim)
    throw std::invalid_argument("key_distances: keys do not fit their layer");
  if (k.rows == 0) return;
  VIGIL_ON_DEVICE(stream, key_distances(stream, k, slots, layer, to));
}

void rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                 const float* sin, const KvLayer& layer) {
  if (!has_keys(layer) || layer.head_dim % 2 != 0 || count < 0)
    throw std::invalid_argument("rotate_keys: the layer has no keys that can be rotated");
  if (count == 0) return;
  VIGIL_ON_DEVICE(stream, rotate_keys(stream, slots, count, cos, sin, layer));
}

void read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
               std::int64_t layers, std::int64_t layer_stride, Matrix to) {
  if (!has_keys(first) || count < 0 || layers < 1 || to.dtype != first.dtype || to.rows != layers * count ||
      to.cols != first.kv_heads * first.head_dim || to.stride < to.cols)
    throw std::invalid_argument("read_keys: rows do not fit the layers' keys");
  if (count == 0) return;
  VIGIL_ON_DEVICE(stream, read_keys(stream, slots, count, first, layers, layer_stride, to));
}

}  // namespace vigil::kernels
