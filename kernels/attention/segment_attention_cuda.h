// Segment attention in bf16 on matrix units: the vision tower's windows and frames.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

#include "kernels/attention/plans_cuda.h"
#include "kernels/device/matrix.h"

namespace vigil::kernels::cuda {

struct SegmentCall {
  ConstMatrix q, k, v;
  Matrix out;
  /// On the device.
  const SegmentTile* tile;
  std::int64_t tiles;
  std::int64_t head_dim;
  float scale;
  /// [rows, head_dim / 2], if queries and keys are still to be rotated, of segments of at most
  /// kSegmentTileRows; else null.
  const float* cos = nullptr;
  const float* sin = nullptr;
  /// On the device; not null: keys and values are those of a layer of the tiles' pictures, k and v none.
  const PictureKeys* pictures = nullptr;
  std::int64_t layer = 0;
};

/// Whether `attend_segment_tiles` can take the call: bf16, heads of 16 to 128 in steps of 16, rows and angles
/// that begin at multiples of 16 bytes.
bool fits_segment_tiles(const SegmentCall& call);

void attend_segment_tiles(cudaStream_t stream, const SegmentCall& call);

}  // namespace vigil::kernels::cuda
