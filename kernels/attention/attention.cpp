#include "kernels/attention/attention.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {
namespace {

void fail(const std::string& what) {
  throw std::invalid_argument("attention: " + what);
}

void check_segments(ConstMatrix q, ConstMatrix k, ConstMatrix v, const SegmentPlan& plan,
                    std::int64_t head_dim, ConstMatrix out) {
  if (q.dtype != DType::f32 && q.dtype != DType::bf16) fail("queries are neither f32 nor bf16");
  if (k.dtype != q.dtype || v.dtype != q.dtype || out.dtype != q.dtype)
    fail("queries, keys, values and output differ in type");
  if (k.rows != q.rows || v.rows != q.rows || out.rows != q.rows || k.cols != q.cols || v.cols != q.cols ||
      out.cols != q.cols || head_dim <= 0 || q.cols % head_dim != 0)
    fail("queries, keys, values and output differ in shape");
  if (plan.rows() != q.rows) fail("segments do not cover the rows");
}

}  // namespace

std::int64_t most_pages(const KvLayer& shape, std::int64_t heads, DeviceKind device) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const std::int64_t slots = kMost / shape.page_tokens;
  // As plans_cuda.cpp chooses kernels, and as kv_map_cuda.cu counts what they address.
  const bool by_rows = device == DeviceKind::cuda && shape.dtype == DType::bf16 && shape.page_tokens == 64 &&
                       (shape.head_dim == 64 || shape.head_dim == 128) && heads / shape.kv_heads <= 128;
  if (!by_rows) return slots;
  const std::int64_t of_last = shape.value_offset / shape.head_dim + shape.kv_heads * shape.page_tokens;
  if (of_last > kMost) return 0;
  return std::min(slots, 1 + (kMost - of_last) / (shape.page_stride / shape.head_dim));
}

void PagedPlan::assign(const Stream& stream, std::span<const AttentionSegment> segments, const KvLayer& layer,
                       std::int64_t heads) {
  segments_.assign(segments.begin(), segments.end());
  shape_ = layer;
  heads_ = heads;
  rows_ = 0;
  if (layer.kv_heads <= 0 || layer.head_dim <= 0 || layer.page_tokens <= 0 || heads % layer.kv_heads != 0)
    fail("query heads are no multiple of key heads");
  for (const AttentionSegment& segment : segments_) {
    if (segment.first_row < 0) fail("a segment lies outside of the queries");
    rows_ = std::max(rows_, segment.first_row + static_cast<std::int64_t>(segment.own.size()));
  }
  slots_.assign(static_cast<std::size_t>(rows_), -1);
  for (const AttentionSegment& segment : segments_)
    for (std::size_t i = 0; i < segment.own.size(); ++i) {
      if (segment.own[i] < 0 || static_cast<std::size_t>(segment.own[i]) >= segment.keys.size() ||
          (i > 0 && segment.own[i] <= segment.own[i - 1]))
        fail("queries are no ascending subset of the keys");
      std::int32_t& slot = slots_[static_cast<std::size_t>(segment.first_row) + i];
      if (slot >= 0) fail("two segments share a row");
      slot = segment.keys[static_cast<std::size_t>(segment.own[i])];
    }
#if VIGIL_CUDA
  if (stream.kind() == DeviceKind::cuda) {
    if (!cuda_) cuda_ = cuda::paged_plan();
    cuda::lay_out(stream, *this, *cuda_);
  }
#else
  static_cast<void>(stream);
#endif
}

void paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan, float scale,
                     Matrix out) {
  if (layer.dtype != DType::f32 && layer.dtype != DType::bf16) fail("keys are neither f32 nor bf16");
  if (q.dtype != layer.dtype || out.dtype != layer.dtype) fail("queries, keys and output differ in type");
  if (q.rows != out.rows || q.cols != out.cols) fail("queries and output differ in shape");
  if (layer.kv_heads <= 0 || layer.head_dim <= 0 || q.cols % (layer.kv_heads * layer.head_dim) != 0)
    fail("query heads are no multiple of key heads");
  if (!plan_fits(plan, layer) || q.cols != plan.heads() * layer.head_dim)
    fail("the plan is for another shape");
  if (plan.rows() > q.rows) fail("a segment lies outside of the queries");
  if (plan.rows() == 0) return;
  VIGIL_ON_DEVICE(stream, paged_attention(stream, q, layer, plan, scale, out));
}

void store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos, const float* sin,
                   const PagedPlan& plan, const KvLayer& layer) {
  if (q.dtype != layer.dtype || q.rows != k.rows || layer.head_dim % 2 != 0 || q.cols % layer.head_dim != 0)
    fail("queries do not fit the new keys");
  if (k.dtype != layer.dtype || v.dtype != layer.dtype)
    fail("new keys and values differ in type from their layer");
  if (k.rows != v.rows || k.rows != plan.rows() || k.cols != layer.kv_heads * layer.head_dim ||
      v.cols != k.cols)
    fail("new keys and values do not fit their layer");
  if (!plan_fits(plan, layer)) fail("the plan is for another shape");
  if (k.rows == 0) return;
  VIGIL_ON_DEVICE(stream, store_rotated(stream, q, k, v, cos, sin, plan, layer));
}

SegmentPlan::SegmentPlan(const Stream& stream, std::span<const std::int32_t> bounds)
    : bounds_(bounds.begin(), bounds.end()) {
  if (bounds.empty() || bounds.front() != 0 || !std::is_sorted(bounds.begin(), bounds.end()))
    fail("the bounds of segments do not ascend from 0");
#if VIGIL_CUDA
  if (stream.kind() == DeviceKind::cuda) cuda_ = cuda::segment_plan(stream, *this);
#else
  static_cast<void>(stream);
#endif
}

void segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v, const SegmentPlan& plan,
                       std::int64_t head_dim, float scale, Matrix out) {
  check_segments(q, k, v, plan, head_dim, out);
  if (q.rows == 0) return;
  VIGIL_ON_DEVICE(stream, segment_attention(stream, q, k, v, plan, head_dim, scale, out));
}

void rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                               const float* sin, const SegmentPlan& plan, std::int64_t head_dim, float scale,
                               Matrix out) {
  check_segments(q, k, v, plan, head_dim, out);
  if (head_dim % 2 != 0) fail("heads of an odd width cannot be rotated");
  if (q.rows == 0) return;
  VIGIL_ON_DEVICE(stream, rotated_segment_attention(stream, q, k, v, cos, sin, plan, head_dim, scale, out));
}

}  // namespace vigil::kernels
