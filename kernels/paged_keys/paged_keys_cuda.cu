#include "kernels/device/cuda.cuh"
#include "kernels/device/slow_path.h"
#include "kernels/paged_keys/paged_keys_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWarp = 32;

/// Where the key of one head in one slot begins.
template <typename T>
__device__ __forceinline__ T* key_of(const KvLayer& layer, std::int64_t slot, std::int64_t head) {
  return static_cast<T*>(layer.base) + slot / layer.page_tokens * layer.page_stride +
         (head * layer.page_tokens + slot % layer.page_tokens) * layer.head_dim;
}

/// One warp a row, a lane a pack at a time.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads)
    measure(const T* k, std::int64_t stride, std::int64_t rows, const std::int32_t* slots,
            const KvLayer layer, float* to) {
  using Values = cuda::Pack<T, count>;
  const std::int64_t row = (std::int64_t{blockIdx.x} * kThreads + threadIdx.x) / kWarp;
  if (row >= rows) return;
  const std::int64_t slot = slots[row];
  const int of_head = static_cast<int>(layer.head_dim) / count;
  const int packs = static_cast<int>(layer.kv_heads) * of_head;
  float sum = 0;
  for (int pack = static_cast<int>(threadIdx.x % kWarp); pack < packs; pack += kWarp) {
    const Values fresh = reinterpret_cast<const Values*>(k + row * stride)[pack];
    const Values kept =
        reinterpret_cast<const Values*>(key_of<const T>(layer, slot, pack / of_head))[pack % of_head];
#pragma unroll
    for (int d = 0; d < count; ++d) {
      const float difference = cuda::number(fresh.values[d]) - cuda::number(kept.values[d]);
      sum += difference * difference;
    }
  }
  sum = cuda::warp_sum(sum);
  if (threadIdx.x % kWarp == 0) to[row] = sum;
}

/// One thread a pack of pairs of one head of one slot.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads) rotate(const std::int32_t* slots, std::int64_t rows,
                                                   const float* cos, const float* sin, const KvLayer layer) {
  using Values = cuda::Pack<T, count>;
  using Angles = cuda::Pack<float, count>;
  const int half = static_cast<int>(layer.head_dim) / 2;
  const int packs = half / count;
  const int each = static_cast<int>(layer.kv_heads) * packs;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / each;
  if (row >= rows) return;
  const int within = static_cast<int>(at % each);
  const int pack = within % packs;
  T* key = key_of<T>(layer, slots[row], within / packs);
  auto* low = reinterpret_cast<Values*>(key) + pack;
  auto* high = reinterpret_cast<Values*>(key + half) + pack;
  const Angles c = reinterpret_cast<const Angles*>(cos + row * half)[pack];
  const Angles s = reinterpret_cast<const Angles*>(sin + row * half)[pack];
  Values a = *low;
  Values b = *high;
#pragma unroll
  for (int j = 0; j < count; ++j) {
    // Not a zero of another sign.
    if (s.values[j] == 0.0F && c.values[j] == 1.0F) continue;
    const float first = cuda::number(a.values[j]);
    const float second = cuda::number(b.values[j]);
    a.values[j] = cuda::rounded<T>(first * c.values[j] - second * s.values[j]);
    b.values[j] = cuda::rounded<T>(second * c.values[j] + first * s.values[j]);
  }
  *low = a;
  *high = b;
}

/// One thread a pack of one head of one slot in one layer.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads)
    read(const std::int32_t* slots, std::int64_t tokens, const KvLayer first, std::int64_t rows,
         std::int64_t layer_stride, T* to, std::int64_t stride) {
  using Values = cuda::Pack<T, count>;
  const int of_head = static_cast<int>(first.head_dim) / count;
  const int each = static_cast<int>(first.kv_heads) * of_head;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / each;
  if (row >= rows) return;
  const int pack = static_cast<int>(at % each);
  const T* key = key_of<const T>(first, slots[row % tokens], pack / of_head) + row / tokens * layer_stride;
  reinterpret_cast<Values*>(to + row * stride)[pack] = reinterpret_cast<const Values*>(key)[pack % of_head];
}

/// Whether the keys of a layer can be taken in packs of 4, `width` elements of each head.
bool keys_pack(const KvLayer& layer, std::int64_t width) {
  return cuda::packs(layer.base, layer.page_stride, width, size_of(layer.dtype), 4);
}

}  // namespace

void cuda::key_distances(Stream& stream, ConstMatrix k, const std::int32_t* slots, const KvLayer& layer,
                         float* to) {
  const cudaStream_t queue = queue_of(stream);
  with_type(k.dtype, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&]<int count>() {
      measure<T, count><<<blocks_for(k.rows, kThreads / kWarp), kThreads, 0, queue>>>(
          k.row<T>(0), k.stride, k.rows, slots, layer, to);
    };
    if (packs(k.data, k.stride, layer.head_dim, sizeof(T), 4) && keys_pack(layer, layer.head_dim)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"key_distances", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
  check_launch("key_distances");
}

void cuda::rotate_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const float* cos,
                       const float* sin, const KvLayer& layer) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t half = layer.head_dim / 2;
  with_type(layer.dtype, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&]<int pack>() {
      rotate<T, pack><<<blocks_for(count * layer.kv_heads * (half / pack), kThreads), kThreads, 0, queue>>>(
          slots, count, cos, sin, layer);
    };
    if (keys_pack(layer, half) && packs(cos, half, half, sizeof(float), 4) &&
        packs(sin, half, half, sizeof(float), 4)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"rotate_keys", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
  check_launch("rotate_keys");
}

void cuda::read_keys(Stream& stream, const std::int32_t* slots, std::int64_t count, const KvLayer& first,
                     std::int64_t layers, std::int64_t layer_stride, Matrix to) {
  const cudaStream_t queue = queue_of(stream);
  with_type(to.dtype, [&](auto type) {
    using T = decltype(type);
    const auto launch = [&]<int pack>() {
      read<T, pack><<<blocks_for(to.rows * (to.cols / pack), kThreads), kThreads, 0, queue>>>(
          slots, count, first, to.rows, layer_stride, to.row<T>(0), to.stride);
    };
    if (keys_pack(first, first.head_dim) && layer_stride % 4 == 0 &&
        packs(to.data, to.stride, to.cols, sizeof(T), 4)) {
      launch.template operator()<4>();
    } else {
      static SlowPath slow{"read_keys", kOddRows};
      slow.taken();
      launch.template operator()<1>();
    }
  });
  check_launch("read_keys");
}

}  // namespace vigil::kernels
