// What the vision tower makes of pictures, and what the decoder takes in their place.
#pragma once

#include <cstdint>
#include <memory>

#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"

namespace vigil::model {

/// The visual tokens of one temporal patch (of a video: `temporal_patch_size` frames; of an image: the
/// image). Immutable once shared: windows that overlap share it, as do the rules of a camera.
struct VisualTokens {
  /// Row-major [grid_height * grid_width, hidden_size] of the decoder, of type `dtype`, on the first device
  /// of the engine that made them; complete: any stream of these devices may copy them.
  kernels::Buffer embeddings;
  /// f32 or bf16.
  kernels::DType dtype = kernels::DType::f32;
  /// Token rows and columns, after the merger.
  int grid_height = 0;
  int grid_width = 0;
  /// Time of the first frame, in seconds of the stream; times of later windows stay comparable.
  double seconds = 0;
  /// Time covered by this temporal patch, in seconds: temporal_patch_size / frames a second.
  double duration = 0;

  std::int64_t count() const { return static_cast<std::int64_t>(grid_height) * grid_width; }

  /// Some of its rows.
  kernels::ConstMatrix rows(std::int64_t first, std::int64_t rows) const {
    const auto all = static_cast<std::int64_t>(embeddings.bytes() / kernels::size_of(dtype));
    const std::int64_t width = all / count();
    return kernels::dense(static_cast<const void*>(embeddings.data()), dtype, count(), width)
        .rows_from(first, rows);
  }
};

using VisualTokensPtr = std::shared_ptr<const VisualTokens>;

}  // namespace vigil::model
