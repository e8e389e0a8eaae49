// The codec's motion signal, as data: no FFmpeg type crosses this header.
#pragma once

#include <cstdint>
#include <vector>

namespace vigil::media {

/// The coding type of a frame, as its codec tells it.
enum class FrameType : std::uint8_t { unknown, intra, predicted, bidirectional };

/// One motion vector of one block, in pixels of the decoded frame.
struct MotionVector {
  /// Top-left corner of the block in the frame that it predicts. May lie outside of the picture.
  std::int16_t x = 0;
  std::int16_t y = 0;
  std::uint8_t width = 0;
  std::uint8_t height = 0;
  /// Frames back (negative) or forward (positive) to the reference, as far as the codec tells; only the sign
  /// is reliable.
  std::int8_t reference = 0;
  /// Displacement from the block to its reference, in units of 1 / `scale` pixel.
  std::int32_t dx = 0;
  std::int32_t dy = 0;
  std::uint16_t scale = 1;

  float dx_pixels() const { return static_cast<float>(dx) / static_cast<float>(scale); }
  float dy_pixels() const { return static_cast<float>(dy) / static_cast<float>(scale); }
};

/// How far a block that has a vector is from its motion-compensated prediction.
struct BlockResidual {
  /// As `MotionVector`'s.
  std::int16_t x = 0;
  std::int16_t y = 0;
  std::uint8_t width = 0;
  std::uint8_t height = 0;
  /// Sum of the absolute differences over the block's pixels inside of the picture, in levels of luma of 8
  /// bits; infinity where the frame that it refers to is not known (media/residual.h).
  float difference = 0;
};

/// The vectors of one decoded frame.
struct FrameMotion {
  double seconds = 0;
  /// Intra frames have no vectors: everything in them may be new.
  bool intra = false;
  FrameType type = FrameType::unknown;
  /// Decoding can start here; not any I frame is such.
  bool key = false;
  /// Size of this frame, in pixels; differs from the field's if the source's size changed since the previous
  /// sample.
  int width = 0;
  int height = 0;
  std::vector<MotionVector> vectors;
  /// Whether residuals were measured; not unless asked for (`ReadOptions::residual`), of intra frames, and of
  /// pixels that have no luma.
  bool measured = false;
  /// One of each block that has vectors, once.
  std::vector<BlockResidual> residual = {};
};

/// The motion of all frames decoded since the previous sample, in order of presentation.
struct MotionField {
  /// False if this codec's decoder exports no vectors (then `frames` have none): absence of motion is not
  /// known.
  bool available = false;
  /// Size of the sampled frame before scaling, which is what its vectors refer to, in pixels.
  int width = 0;
  int height = 0;
  std::vector<FrameMotion> frames;
};

}  // namespace vigil::media
