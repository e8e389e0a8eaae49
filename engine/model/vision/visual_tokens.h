// What the vision tower makes of pictures, and what the decoder takes in their place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/grid_mask.h"
#include "kernels/device/buffer.h"
#include "kernels/device/dtype.h"
#include "kernels/device/matrix.h"

namespace vigil::model {

/// The visual tokens of one temporal patch (of a video: `temporal_patch_size` frames; of an image: the
/// image). Immutable once shared: windows that overlap share it, as do the rules of a camera.
struct VisualTokens {
  /// Row-major [count(), width], of type `dtype`, on the first device of the engine that made them; complete:
  /// any stream of these devices may copy them.
  kernels::Buffer embeddings;
  /// f32 or bf16.
  kernels::DType dtype = kernels::DType::f32;
  /// Values of a token: the hidden_size of the decoder.
  std::int64_t width = 0;
  /// Of the token rows and columns that the pictures have after the merger, those whose tokens are here,
  /// along the rows. There may be none: then nothing of the pictures was worth encoding.
  base::GridMask kept;
  /// Of those, the few that differ most from what is usual there; absent: nobody said.
  std::optional<base::GridMask> standing_out = std::nullopt;
  /// Time of the first frame, in seconds of the stream; times of later windows stay comparable.
  double seconds = 0;
  /// Time covered by this temporal patch, in seconds: temporal_patch_size / frames a second.
  double duration = 0;
  /// One of the frames refers to no other (an I-frame).
  bool intra = false;
  /// Groups that the tower computed of these frames; other tokens are those that it made of earlier ones.
  std::int64_t encoded = 0;

  std::int64_t count() const { return kept.count(); }
  /// Of the embeddings.
  std::size_t bytes() const { return static_cast<std::size_t>(count() * width) * kernels::size_of(dtype); }

  /// Some of its rows.
  kernels::ConstMatrix rows(std::int64_t first, std::int64_t rows) const {
    return kernels::dense(static_cast<const void*>(embeddings.data()), dtype, count(), width)
        .rows_from(first, rows);
  }
};

using VisualTokensPtr = std::shared_ptr<const VisualTokens>;

}  // namespace vigil::model
