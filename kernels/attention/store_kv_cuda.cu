#include "kernels/attention/attention_backends.h"
#include "kernels/attention/plans_cuda.h"
#include "kernels/device/cuda.cuh"
#include "kernels/device/overlap.cuh"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = 256;

/// Of the rows that come in: query, key and value heads, `half` pairs of elements each.
template <typename T>
struct Rows {
  T* q;
  const T* k;
  const T* v;
  std::int64_t q_stride, k_stride, v_stride;
  std::int64_t count;
  int heads, half;
  const float* cos;
  const float* sin;
  const std::int32_t* slots;
};

/// One thread a pack of pairs of one head of one row: query heads come first, then those of keys, then of
/// values.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads) store(const Rows<T> rows, const KvLayer layer) {
  using Values = cuda::Pack<T, count>;
  using Angles = cuda::Pack<float, count>;
  cuda::let_next_begin();
  cuda::await_previous();
  const int packs = rows.half / count;
  const int kv_heads = static_cast<int>(layer.kv_heads);
  const int each = (rows.heads + 2 * kv_heads) * packs;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / each;
  if (row >= rows.count) return;
  const int within = static_cast<int>(at % each);
  const int pack = within % packs;
  const int head = within / packs;
  const bool query = head < rows.heads;
  const bool value = head >= rows.heads + kv_heads;
  const int kv_head = (head - rows.heads) % kv_heads;

  const T* from = query   ? rows.q + row * rows.q_stride + head * 2 * rows.half
                  : value ? rows.v + row * rows.v_stride + kv_head * 2 * rows.half
                          : rows.k + row * rows.k_stride + kv_head * 2 * rows.half;
  T* to = rows.q + row * rows.q_stride + head * 2 * rows.half;
  if (!query) {
    const std::int64_t slot = rows.slots[row];
    if (slot < 0) return;
    to = static_cast<T*>(layer.base) + slot / layer.page_tokens * layer.page_stride +
         (kv_head * layer.page_tokens + slot % layer.page_tokens) * layer.head_dim +
         (value ? layer.value_offset : 0);
  }
  Values a = reinterpret_cast<const Values*>(from)[pack];
  Values b = reinterpret_cast<const Values*>(from + rows.half)[pack];
  if (!value) {
    const Angles c = reinterpret_cast<const Angles*>(rows.cos + row * rows.half)[pack];
    const Angles s = reinterpret_cast<const Angles*>(rows.sin + row * rows.half)[pack];
#pragma unroll
    for (int j = 0; j < count; ++j) {
      const float first = cuda::number(a.values[j]);
      const float second = cuda::number(b.values[j]);
      a.values[j] = cuda::rounded<T>(first * c.values[j] - second * s.values[j]);
      b.values[j] = cuda::rounded<T>(second * c.values[j] + first * s.values[j]);
    }
  }
  reinterpret_cast<Values*>(to)[pack] = a;
  reinterpret_cast<Values*>(to + rows.half)[pack] = b;
}

}  // namespace

void cuda::store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                         const float* sin, const PagedPlan& plan, const KvLayer& layer) {
  const cudaStream_t queue = queue_of(stream);
  const std::int64_t half = layer.head_dim / 2;
  with_type(k.dtype, [&](auto type) {
    using T = decltype(type);
    const Rows<T> rows{q.row<T>(0),
                       k.row<T>(0),
                       v.row<T>(0),
                       q.stride,
                       k.stride,
                       v.stride,
                       k.rows,
                       static_cast<int>(q.cols / layer.head_dim),
                       static_cast<int>(half),
                       cos,
                       sin,
                       plan.cuda().slots};
    const auto fits = [&](const void* data, std::int64_t stride, std::size_t element) {
      return packs(data, stride, half, element, 4);
    };
    const auto with = [&]<int count>() {
      const std::int64_t each = (rows.heads + 2 * layer.kv_heads) * (half / count);
      launch_early(store<T, count>, {blocks_for(k.rows * each, kThreads), kThreads}, queue, rows, layer);
    };
    const bool whole = fits(q.data, q.stride, sizeof(T)) && fits(k.data, k.stride, sizeof(T)) &&
                       fits(v.data, v.stride, sizeof(T)) && fits(cos, half, sizeof(float)) &&
                       fits(sin, half, sizeof(float)) && fits(layer.base, layer.page_stride, sizeof(T)) &&
                       layer.value_offset % 4 == 0;
    if (whole) {
      with.template operator()<4>();
    } else {
      static SlowPath slow{"store_rotated", kOddRows};
      slow.taken();
      with.template operator()<1>();
    }
  });
}

}  // namespace vigil::kernels
