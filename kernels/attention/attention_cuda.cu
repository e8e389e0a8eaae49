// Attention for any type, page and head: one warp a query and head. What has a faster kernel takes that.
#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/attention/decode_attention_cuda.h"
#include "kernels/attention/indexed_attention_cuda.h"
#include "kernels/attention/plans_cuda.h"
#include "kernels/attention/segment_attention_cuda.h"
#include "kernels/attention/warp_attention_cuda.h"
#include "kernels/device/slow_path.h"
#include "kernels/rope/rope_backends.h"

namespace vigil::kernels {
namespace {

constexpr int kThreads = kWarpAttentionThreads;
constexpr int kWarps = kThreads / 32;

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attend_pages(const T* q, std::int64_t q_stride, KvLayer layer, const std::int32_t* keys,
                 const RowKeys* row_keys, std::int64_t rows, int heads, float scale, T* out,
                 std::int64_t out_stride) {
  const std::int64_t task = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / 32;
  const std::int64_t row = task / heads;
  if (row >= rows) return;
  const RowKeys mine = row_keys[row];
  if (mine.count == 0) return;
  const auto head = static_cast<int>(task % heads);
  const std::int64_t kv_head = head / (heads / layer.kv_heads);
  const auto* base = static_cast<const T*>(layer.base);
  const auto at = [&](std::int64_t j) {
    const std::int64_t slot = keys[mine.first + j];
    return base + slot / layer.page_tokens * layer.page_stride +
           (kv_head * layer.page_tokens + slot % layer.page_tokens) * layer.head_dim;
  };
  const auto head_dim = static_cast<int>(layer.head_dim);
  warp_attend(
      q + row * q_stride + head * head_dim, mine.count, head_dim, scale, at,
      [&](std::int64_t j) { return at(j) + layer.value_offset; }, out + row * out_stride + head * head_dim);
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    attend_segments(const T* q, std::int64_t q_stride, const T* k, std::int64_t k_stride, const T* v,
                    std::int64_t v_stride, const SegmentTile* tiles, int head_dim, float scale, T* out,
                    std::int64_t out_stride) {
  const SegmentTile tile = tiles[blockIdx.x];
  const std::int64_t column = std::int64_t{blockIdx.y} * head_dim;
  for (int i = static_cast<int>(threadIdx.x / 32); i < kSegmentTileRows; i += kWarps) {
    const std::int64_t row = tile.row + i;
    if (row >= tile.row_end) return;
    warp_attend(
        q + row * q_stride + column, tile.end - tile.begin, head_dim, scale,
        [&](std::int64_t j) { return k + (tile.begin + j) * k_stride + column; },
        [&](std::int64_t j) { return v + (tile.begin + j) * v_stride + column; },
        out + row * out_stride + column);
  }
}

/// On matrix units, for the shapes that have such a plan.
void attend_by_pages(Stream& stream, ConstMatrix q, const KvLayer& layer, const CudaPagedPlan& plan,
                     float scale, Matrix out) {
  CudaQueue& queue = stream.cuda_queue();
  const auto heads = static_cast<int>(q.cols / layer.head_dim);
  const auto kv_heads = static_cast<int>(layer.kv_heads);
  const auto head_dim = static_cast<int>(layer.head_dim);
  if (plan.decode) {
    cuda::DecodeAttention call;
    call.q = q.data;
    call.q_stride = q.stride;
    call.out = out.data;
    call.out_stride = out.stride;
    call.base = layer.base;
    call.page_stride = layer.page_stride;
    call.value_offset = layer.value_offset;
    call.pool_pages = layer.pages;
    call.kv_heads = kv_heads;
    call.heads = heads;
    call.head_dim = head_dim;
    call.sequences = plan.segments;
    call.page_ids = plan.page_ids;
    call.live = plan.live;
    call.first_page = plan.first_page;
    call.position = plan.position;
    call.workspace = queue.workspace(CudaQueue::Workspace::decode_attention,
                                     cuda::decode_workspace_bytes(plan.segments, heads, kv_heads, head_dim));
    call.scale = scale;
    // They came by a copy, which no kernel overlaps with.
    call.lists_in_place = true;
    cuda::decode_attention(queue.stream(), call);
    return;
  }
  cuda::IndexedAttention call;
  call.q = q.data;
  call.q_stride = q.stride;
  call.out = out.data;
  call.out_stride = out.stride;
  call.base = layer.base;
  call.page_stride = layer.page_stride;
  call.value_offset = layer.value_offset;
  call.pool_pages = layer.pages;
  call.kv_heads = kv_heads;
  call.heads = heads;
  call.head_dim = head_dim;
  call.page_ids = plan.page_ids;
  call.live = plan.live;
  call.position = plan.position;
  call.tiles = plan.tiles;
  call.tile_count = plan.tile_count;
  call.scale = scale;
  call.workspace =
      queue.workspace(CudaQueue::Workspace::indexed_attention, cuda::indexed_workspace_bytes(head_dim));
  cuda::indexed_attention(queue.stream(), call);
}

}  // namespace

void cuda::paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                           float scale, Matrix out) {
  const cudaStream_t queue = queue_of(stream);
  const CudaPagedPlan& there = plan.cuda();
  if (there.by_pages) return attend_by_pages(stream, q, layer, there, scale, out);
  check_warp_head(layer.head_dim);
  const auto heads = static_cast<int>(q.cols / layer.head_dim);
  with_type(q.dtype, [&](auto type) {
    using T = decltype(type);
    attend_pages<T><<<blocks_for(there.rows * heads, kWarps), kThreads, 0, queue>>>(
        q.row<T>(0), q.stride, layer, there.keys, there.row_keys, there.rows, heads, scale, out.row<T>(0),
        out.stride);
  });
  check_launch("paged_attention");
}

void cuda::segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v,
                             const SegmentPlan& plan, std::int64_t head_dim, float scale, Matrix out) {
  check_warp_head(head_dim);
  if (q.cols / head_dim > kMostSegmentHeadsOnGpu)
    throw std::invalid_argument("attention: " + std::to_string(q.cols / head_dim) + " heads, at most " +
                                std::to_string(kMostSegmentHeadsOnGpu) + " on a GPU");
  const cudaStream_t queue = queue_of(stream);
  const CudaSegmentPlan& there = plan.cuda();
  const SegmentCall call{q, k, v, out, there.tile.data(), there.tiles, head_dim, scale};
  if (fits_segment_tiles(call)) {
    attend_segment_tiles(queue, call);
    return;
  }
  static SlowPath dtype{"segment_attention",
                        "queries are f32: on matrix units are bf16 ones only; a warp a query"};
  static SlowPath head{"segment_attention", "heads are no multiple of 16 elements up to 128; a warp a query"};
  static SlowPath place{"segment_attention", "rows do not begin at multiples of 16 bytes; a warp a query"};
  (q.dtype != DType::bf16 ? dtype : head_dim % 16 != 0 || head_dim > 128 ? head : place).taken();
  const auto heads = static_cast<unsigned>(q.cols / head_dim);
  with_type(q.dtype, [&](auto type) {
    using T = decltype(type);
    attend_segments<T><<<dim3(static_cast<unsigned>(there.tiles), heads), kThreads, 0, queue>>>(
        q.row<T>(0), q.stride, k.row<T>(0), k.stride, v.row<T>(0), v.stride, there.tile.data(),
        static_cast<int>(head_dim), scale, out.row<T>(0), out.stride);
  });
  check_launch("segment_attention");
}

void cuda::rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                                     const float* sin, const SegmentPlan& plan, std::int64_t head_dim,
                                     float scale, Matrix out) {
  const CudaSegmentPlan& there = plan.cuda();
  const SegmentCall call{q, k, v, out, there.tile.data(), there.tiles, head_dim, scale, cos, sin};
  // Of more tiles, each would turn all keys of its segment.
  if (there.longest <= kSegmentTileRows && q.cols / head_dim <= kMostSegmentHeadsOnGpu &&
      fits_segment_tiles(call))
    return attend_segment_tiles(queue_of(stream), call);
  cuda::rope(stream, q, head_dim, cos, sin);
  cuda::rope(stream, k, head_dim, cos, sin);
  cuda::segment_attention(stream, q, k, v, plan, head_dim, scale, out);
}

}  // namespace vigil::kernels
