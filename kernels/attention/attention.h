// Attention that never holds a full score matrix: keys are visited tile by tile with a running maximum and
// sum (online softmax).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Elements of a head on a GPU, at most.
inline constexpr std::int64_t kMostHeadDimOnGpu = 256;
/// Heads of segment_attention on a GPU, at most: the blocks of a grid's second dimension.
inline constexpr std::int64_t kMostSegmentHeadsOnGpu = 65535;

/// Where the keys and values of one decoder layer lie: pages of `page_tokens` tokens, a page of a layer being
///
///   key   [kv_heads, page_tokens, head_dim]   at base + page * page_stride
///   value [kv_heads, page_tokens, head_dim]   at base + page * page_stride + value_offset      (all in
///   elements)
///
/// A *slot* names a token's place: page * page_tokens + the token's index in its page.
struct KvLayer {
  void* base = nullptr;
  DType dtype = DType::f32;
  std::int64_t pages = 0;
  std::int64_t page_stride = 0;
  std::int64_t value_offset = 0;
  std::int64_t page_tokens = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;

  /// Element offset of the key of one head in one slot.
  std::int64_t offset(std::int64_t slot, std::int64_t head) const {
    return slot / page_tokens * page_stride + (head * page_tokens + slot % page_tokens) * head_dim;
  }
};

/// The most pages that attention of `heads` query heads can address on a device, in layers of this shape
/// (whose number of pages and memory are not looked at): slots have 32 bits; and where a GPU's copy engine
/// reads the pages (bf16, 64 tokens, heads of 64 or 128 elements, at most 128 query heads a key head), so
/// have the rows of head_dim elements from the layer's first key to its last value.
std::int64_t most_pages(const KvLayer& shape, std::int64_t heads, DeviceKind device);

/// One sequence's share of an attention pass: a subset of its tokens asks, all of its live tokens answer.
struct AttentionSegment {
  /// The slots of the live keys in ascending stream order, those of this pass included.
  std::span<const std::int32_t> keys;
  /// For each query of this segment, ascending, its own index in `keys`: query i sees keys[0 .. own[i]].
  std::span<const std::int32_t> own;
  /// The row of the first query in q and out; the others follow.
  std::int64_t first_row = 0;
};

/// The GPU's form of a plan; known to CUDA implementations only (attention/plans_cuda.h).
struct CudaPagedPlan;
struct CudaSegmentPlan;

/// Which keys each query of a pass sees, checked once and laid out for the stream's device, for all layers of
/// the pass. Move-only.
class PagedPlan {
 public:
  /// Nobody asks.
  PagedPlan() = default;
  PagedPlan(const Stream& stream, std::span<const AttentionSegment> segments, const KvLayer& layer,
            std::int64_t heads) {
    assign(stream, segments, layer, heads);
  }
  PagedPlan(PagedPlan&&) = default;
  PagedPlan& operator=(PagedPlan&&) = default;

  /// Plans anew, where possible in the same device memory: operations that were recorded with the plan then
  /// follow it. For layers of the shape and type of `layer` (whose memory is not looked at) and queries of
  /// `heads` heads. The spans of the segments have to live as long as the plan. Throws std::invalid_argument
  /// for queries that are no ascending subset of their keys, and for segments that overlap.
  void assign(const Stream& stream, std::span<const AttentionSegment> segments, const KvLayer& layer,
              std::int64_t heads);

  std::span<const AttentionSegment> segments() const { return segments_; }
  /// Rows of q and out that the segments reach to.
  std::int64_t rows() const { return rows_; }
  const KvLayer& shape() const { return shape_; }
  std::int64_t heads() const { return heads_; }
  /// The slot of each query's own key and value, on the host; -1 for a row of no segment.
  std::span<const std::int32_t> slots() const { return slots_; }
  /// Only for a CUDA stream.
  const CudaPagedPlan& cuda() const { return *cuda_; }

 private:
  std::vector<AttentionSegment> segments_;
  std::int64_t rows_ = 0;
  KvLayer shape_;
  std::int64_t heads_ = 0;
  std::vector<std::int32_t> slots_;
  std::shared_ptr<CudaPagedPlan> cuda_;
};

/// out[i, h] = Σ_j softmax_j(scale q[i, h] · k[j, h / group]) v[j, h / group] over the keys that query i
/// sees.
///
/// q and out: [rows, heads * head_dim] of the layer's type; heads is a multiple of kv_heads. Rows outside of
/// every segment are not written. Accumulates in f32. Throws std::invalid_argument for shapes or types that
/// do not fit, on a GPU for heads of more than kMostHeadDimOnGpu.
void paged_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan, float scale,
                     Matrix out);

/// What follows the projections of a layer: rotates the heads of q in place, as `rope` does (rope/rope.h),
/// and writes keys, rotated, and values into the slots of the plan's queries, row by row.
///
/// k and v: [rows, kv_heads * head_dim] of the layer's type; q: [rows, heads * head_dim], any number of
/// heads, none too. cos and sin: f32 [rows, head_dim / 2], dense. What is left in k is unspecified. Throws
/// std::invalid_argument for shapes or types that do not fit.
void store_rotated(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos, const float* sin,
                   const PagedPlan& plan, const KvLayer& layer);

/// Rows that attend to each other: segment s is rows [bounds[s], bounds[s + 1]). Immutable.
class SegmentPlan {
 public:
  SegmentPlan() = default;
  /// Throws std::invalid_argument unless `bounds` ascend from 0.
  SegmentPlan(const Stream& stream, std::span<const std::int32_t> bounds);

  std::span<const std::int32_t> bounds() const { return bounds_; }
  std::int64_t rows() const { return bounds_.empty() ? 0 : bounds_.back(); }
  const CudaSegmentPlan& cuda() const { return *cuda_; }

 private:
  std::vector<std::int32_t> bounds_;
  std::shared_ptr<const CudaSegmentPlan> cuda_;
};

/// Attention in both directions within the segments of a plan over all of q's rows. q, k, v, out: [rows,
/// heads * head_dim], one type, f32 or bf16; they may be columns of one matrix (out apart). Throws
/// std::invalid_argument as paged_attention does, on a GPU for more than kMostSegmentHeadsOnGpu heads, too.
void segment_attention(Stream& stream, ConstMatrix q, ConstMatrix k, ConstMatrix v, const SegmentPlan& plan,
                       std::int64_t head_dim, float scale, Matrix out);

/// The same of queries and keys that are rotated first as `rope` does (rope.h; its cos and sin), in place or
/// on their way: what q and k hold afterwards is not said. Throws what both do.
void rotated_segment_attention(Stream& stream, Matrix q, Matrix k, ConstMatrix v, const float* cos,
                               const float* sin, const SegmentPlan& plan, std::int64_t head_dim, float scale,
                               Matrix out);

}  // namespace vigil::kernels
