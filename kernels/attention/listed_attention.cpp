#include "kernels/attention/listed_attention.h"

#include <limits>
#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {
namespace {

void refuse(const std::string& what) {
  throw std::invalid_argument("attention over lists: " + what);
}

}  // namespace

void listed_attention(Stream& stream, ConstMatrix q, const KvLayer& layer, const PagedPlan& plan,
                      const KvLists& lists, float scale, Matrix out) {
  if (layer.dtype != DType::f32 && layer.dtype != DType::bf16) refuse("keys are neither f32 nor bf16");
  if (q.dtype != layer.dtype || out.dtype != layer.dtype) refuse("queries, keys and output differ in type");
  if (q.rows != out.rows || q.cols != out.cols) refuse("queries and output differ in shape");
  if (!plan_fits(plan, layer) || q.cols != plan.heads() * layer.head_dim)
    refuse("the plan is for another shape");
  if (plan.rows() > q.rows) refuse("a segment lies outside of the queries");
  if (lists.sequences < 0) refuse("lists of fewer than no sequences");
  if (lists.of_segment == nullptr && lists.sequences != static_cast<std::int64_t>(plan.segments().size()))
    refuse("there are lists of " + std::to_string(lists.sequences) + " sequences for " +
           std::to_string(plan.segments().size()) + " segments");
  if (lists.capacity < 0 || lists.capacity > std::numeric_limits<std::int32_t>::max())
    refuse("lists of " + std::to_string(lists.capacity) + " keys");
  if (lists.sequences > 0 &&
      (lists.counts == nullptr || (lists.capacity > 0 && (lists.keys == nullptr || lists.values == nullptr))))
    refuse("lists without keys, values or lengths");
  if (!(scale > 0)) refuse("the scale is not above 0");
  if (plan.rows() == 0) return;
  VIGIL_ON_DEVICE(stream, listed_attention(stream, q, layer, plan, lists, scale, out));
}

}  // namespace vigil::kernels
