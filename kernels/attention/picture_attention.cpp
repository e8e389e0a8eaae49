#include "kernels/attention/picture_attention.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "kernels/attention/attention_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {
namespace {

void fail(const std::string& what) {
  throw std::invalid_argument("attention over pictures: " + what);
}

void check_layer(const PicturePlan& plan, std::int64_t layer) {
  for (const PictureKeys& picture : plan.pictures())
    if (layer < 0 || picture.base == nullptr) fail("a picture has no keys of this layer");
}

}  // namespace

PicturePlan::PicturePlan(const Stream& stream, std::span<const PictureKeys> pictures,
                         std::span<const std::int32_t> bounds, std::span<const std::int32_t> places)
    : pictures_(pictures.begin(), pictures.end()),
      bounds_(bounds.begin(), bounds.end()),
      places_(places.begin(), places.end()) {
  if (bounds.size() != pictures.size() + 1 || bounds.front() != 0 ||
      bounds.back() != static_cast<std::int32_t>(places.size()) ||
      !std::is_sorted(bounds.begin(), bounds.end()))
    fail("bounds that do not ascend over all rows");
  for (std::size_t p = 0; p < pictures.size(); ++p)
    for (std::int32_t i = bounds[p]; i < bounds[p + 1]; ++i)
      if (places_[static_cast<std::size_t>(i)] < 0 ||
          places_[static_cast<std::size_t>(i)] >= pictures_[p].rows)
        fail("a row lies outside of its picture");
#if VIGIL_CUDA
  if (stream.kind() == DeviceKind::cuda) cuda_ = cuda::picture_plan(stream, *this);
#else
  static_cast<void>(stream);
#endif
}

void store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan, std::int64_t layer) {
  if (k.dtype != DType::f32 && k.dtype != DType::bf16) fail("keys are neither f32 nor bf16");
  if (v.dtype != k.dtype || v.rows != k.rows || v.cols != k.cols) fail("keys and values differ");
  if (k.rows != plan.rows()) fail("the plan is of other rows");
  check_layer(plan, layer);
  if (k.rows == 0) return;
  VIGIL_ON_DEVICE(stream, store_keys(stream, k, v, plan, layer));
}

void picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                       std::int64_t head_dim, float scale, Matrix out) {
  if (q.dtype != DType::f32 && q.dtype != DType::bf16) fail("queries are neither f32 nor bf16");
  if (out.dtype != q.dtype || out.rows != q.rows || out.cols != q.cols || head_dim <= 0 ||
      q.cols % head_dim != 0)
    fail("queries and output differ");
  if (q.rows != plan.rows()) fail("the plan is of other rows");
  check_layer(plan, layer);
  if (q.rows == 0) return;
  VIGIL_ON_DEVICE(stream, picture_attention(stream, q, plan, layer, head_dim, scale, out));
}

}  // namespace vigil::kernels
