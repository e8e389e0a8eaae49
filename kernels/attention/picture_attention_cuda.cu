#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/plans_cuda.h"
#include "kernels/attention/segment_attention_cuda.h"
#include "kernels/attention/warp_attention_cuda.h"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = kWarpAttentionThreads;

/// One thread a pack of keys and values of one row.
template <typename T, int count>
__global__ void __launch_bounds__(kThreads)
    store(const T* k, std::int64_t k_stride, const T* v, std::int64_t v_stride, const PictureKeys* pictures,
          const std::int32_t* owners, const std::int32_t* places, std::int64_t layer, std::int64_t rows,
          std::int64_t packs) {
  using Values = cuda::Pack<T, count>;
  const std::int64_t at = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const std::int64_t row = at / packs;
  if (row >= rows) return;
  const std::int64_t pack = at % packs;
  const PictureKeys picture = pictures[owners[row]];
  T* const base = static_cast<T*>(picture.base) + layer * picture.layer_stride;
  const std::int64_t cols = packs * count;
  T* const key = base + std::int64_t{places[row]} * cols;
  reinterpret_cast<Values*>(key)[pack] = reinterpret_cast<const Values*>(k + row * k_stride)[pack];
  reinterpret_cast<Values*>(key + picture.rows * cols)[pack] =
      reinterpret_cast<const Values*>(v + row * v_stride)[pack];
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attend_pictures(const T* q, std::int64_t q_stride, const PictureKeys* pictures, const SegmentTile* tiles,
                    std::int64_t layer, int head_dim, float scale, T* out, std::int64_t out_stride) {
  const SegmentTile tile = tiles[blockIdx.x];
  const PictureKeys picture = pictures[tile.picture];
  const std::int64_t cols = std::int64_t{gridDim.y} * head_dim;
  const std::int64_t column = std::int64_t{blockIdx.y} * head_dim;
  const T* const k = static_cast<const T*>(picture.base) + layer * picture.layer_stride + column;
  const T* const v = k + picture.rows * cols;
  for (int i = static_cast<int>(threadIdx.x / 32); i < kSegmentTileRows; i += kThreads / 32) {
    const std::int64_t row = tile.row + i;
    if (row >= tile.row_end) return;
    warp_attend(
        q + row * q_stride + column, picture.rows, head_dim, scale,
        [&](std::int64_t j) { return k + j * cols; }, [&](std::int64_t j) { return v + j * cols; },
        out + row * out_stride + column);
  }
}

}  // namespace

void cuda::store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan,
                      std::int64_t layer) {
  const cudaStream_t queue = queue_of(stream);
  const CudaPicturePlan& there = plan.cuda();
  with_type(k.dtype, [&](auto type) {
    using T = decltype(type);
    const auto with = [&]<int count>() {
      const std::int64_t packs = k.cols / count;
      store<T, count><<<blocks_for(k.rows * packs, kThreads), kThreads, 0, queue>>>(
          k.row<T>(0), k.stride, v.row<T>(0), v.stride, there.pictures(), there.owners(), there.places(),
          layer, k.rows, packs);
    };
    bool whole =
        packs(k.data, k.stride, k.cols, sizeof(T), 4) && packs(v.data, v.stride, v.cols, sizeof(T), 4);
    for (const PictureKeys& picture : plan.pictures())
      whole = whole && packs(picture.base, picture.layer_stride, k.cols, sizeof(T), 4);
    if (whole) {
      with.template operator()<4>();
    } else {
      static SlowPath slow{"store_keys", kOddRows};
      slow.taken();
      with.template operator()<1>();
    }
  });
  check_launch("store_keys");
}

void cuda::picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                             std::int64_t head_dim, float scale, Matrix out) {
  check_warp_head(head_dim);
  if (q.cols / head_dim > kMostSegmentHeadsOnGpu)
    throw std::invalid_argument("attention: " + std::to_string(q.cols / head_dim) + " heads, at most " +
                                std::to_string(kMostSegmentHeadsOnGpu) + " on a GPU");
  const cudaStream_t queue = queue_of(stream);
  const CudaPicturePlan& there = plan.cuda();
  SegmentCall call{.q = q,
                   .out = out,
                   .tile = there.tiles(),
                   .tiles = there.tile_count,
                   .head_dim = head_dim,
                   .scale = scale};
  call.pictures = there.pictures();
  call.layer = layer;
  bool aligned = true;
  for (const PictureKeys& picture : plan.pictures())
    aligned =
        aligned && reinterpret_cast<std::uintptr_t>(picture.base) % 16 == 0 && picture.layer_stride % 8 == 0;
  if (aligned && fits_segment_tiles(call)) return attend_segment_tiles(queue, call);
  static SlowPath slow{
      "picture_attention",
      "f32, heads that are no multiple of 16 elements up to 128, or rows that do not begin at "
      "multiples of 16 bytes: a warp a query"};
  slow.taken();
  with_type(q.dtype, [&](auto type) {
    using T = decltype(type);
    attend_pictures<T>
        <<<dim3(static_cast<unsigned>(there.tile_count), static_cast<unsigned>(q.cols / head_dim)), kThreads,
           0, queue>>>(q.row<T>(0), q.stride, there.pictures(), there.tiles(), layer,
                       static_cast<int>(head_dim), scale, out.row<T>(0), out.stride);
  });
  check_launch("picture_attention");
}

}  // namespace vigil::kernels
