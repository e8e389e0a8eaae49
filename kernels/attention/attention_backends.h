// The implementations behind attention.h, which has checked what they are given.
#pragma once

#include "kernels/attention/attention.h"
#include "kernels/attention/listed_attention.h"
#include "kernels/attention/picture_attention.h"

namespace vigil::kernels {
/// Whether a plan was made for layers of this shape and type.
inline bool plan_fits(const PagedPlan& plan, const KvLayer& layer) {
  const KvLayer& shape = plan.shape();
  return shape.dtype == layer.dtype && shape.page_tokens == layer.page_tokens &&
         shape.kv_heads == layer.kv_heads && shape.head_dim == layer.head_dim;
}

namespace cpu {
void paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan, float scale,
                     Matrix out);
void listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                      const KvLists& lists, float scale, Matrix out);
void store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos, const float* sin,
                   const PagedPlan& plan, const KvLayer& layer);
void segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v, const SegmentPlan& plan,
                       std::int64_t head_dim, float scale, Matrix out);
void rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                               const float* sin, const SegmentPlan& plan, std::int64_t head_dim, float scale,
                               Matrix out);
void store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan, std::int64_t layer);
void picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                       std::int64_t head_dim, float scale, Matrix out);
}  // namespace cpu
namespace cuda {
void paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan, float scale,
                     Matrix out);
void listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                      const KvLists& lists, float scale, Matrix out);
void store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos, const float* sin,
                   const PagedPlan& plan, const KvLayer& layer);
void segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v, const SegmentPlan& plan,
                       std::int64_t head_dim, float scale, Matrix out);
void rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                               const float* sin, const SegmentPlan& plan, std::int64_t head_dim, float scale,
                               Matrix out);
void store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan, std::int64_t layer);
void picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                       std::int64_t head_dim, float scale, Matrix out);
std::shared_ptr<CudaPagedPlan> paged_plan();
void lay_out(const Stream& stream, const PagedPlan& plan, CudaPagedPlan& to);
std::shared_ptr<const CudaSegmentPlan> segment_plan(const Stream& stream, const SegmentPlan& plan);
std::shared_ptr<const CudaPicturePlan> picture_plan(const Stream& stream, const PicturePlan& plan);
}  // namespace cuda
}  // namespace vigil::kernels
