// Attention over whole pictures of which a pass brings some rows only: the others' keys and values are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Keys and values of all rows of one picture, in several layers, on the stream's device, dense and of one
/// type:
///
///   key   [rows, cols]   at base + layer * layer_stride
///   value [rows, cols]   rows * cols behind it                       (all in elements)
struct PictureKeys {
  void* base = nullptr;
  std::int64_t layer_stride = 0;
  std::int64_t rows = 0;
};

/// The GPU's form of a plan; known to CUDA implementations only (attention/plans_cuda.h).
struct CudaPicturePlan;

/// Which rows of a pass belong to which picture, and where in it; checked once and laid out for the stream's
/// device, for all layers of the pass. Immutable.
class PicturePlan {
 public:
  /// No rows.
  PicturePlan() = default;
  /// Rows [bounds[p], bounds[p + 1]) of the pass are rows of pictures[p], row i at places[i] there. Every
  /// picture is named once: who computes it has its memory alone. Throws std::invalid_argument unless the
  /// bounds ascend from 0 and the places lie in their pictures.
  PicturePlan(const Stream& stream, std::span<const PictureKeys> pictures,
              std::span<const std::int32_t> bounds, std::span<const std::int32_t> places);

  std::span<const PictureKeys> pictures() const { return pictures_; }
  std::span<const std::int32_t> bounds() const { return bounds_; }
  std::span<const std::int32_t> places() const { return places_; }
  std::int64_t rows() const { return static_cast<std::int64_t>(places_.size()); }
  /// Only for a CUDA stream.
  const CudaPicturePlan& cuda() const { return *cuda_; }

 private:
  std::vector<PictureKeys> pictures_;
  std::vector<std::int32_t> bounds_, places_;
  std::shared_ptr<const CudaPicturePlan> cuda_;
};

/// Writes the keys and values of the pass's rows to their places in one layer of their pictures.
///
/// k and v: [plan.rows(), cols] of the pictures' type, f32 or bf16. Throws std::invalid_argument for shapes
/// or types that do not fit.
void store_keys(Stream& stream, ConstMatrix k, ConstMatrix v, const PicturePlan& plan, std::int64_t layer);

/// out[i, h] = Σ_j softmax_j(scale q[i, h] · k[j, h]) v[j, h] over all rows j of the picture that row i of
/// the pass belongs to.
///
/// q and out: [plan.rows(), heads * head_dim] of the pictures' type, whose cols are as many. Accumulates in
/// f32. Throws std::invalid_argument as segment_attention does (attention.h).
void picture_attention(Stream& stream, ConstMatrix q, const PicturePlan& plan, std::int64_t layer,
                       std::int64_t head_dim, float scale, Matrix out);

}  // namespace vigil::kernels
