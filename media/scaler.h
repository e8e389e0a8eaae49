// Decoded frames to RGB pictures of a wanted size.
#pragma once

#include <optional>
#include <vector>

#include "media/ffmpeg.h"
#include "media/media.h"

namespace vigil::media {

/// Scales by swscale's bicubic filter, which widens when it shrinks (no aliasing), and converts with the
/// frame's own matrix and range (unspecified: as FFmpeg does, BT.601 limited). Keeps its tables while the
/// frames stay alike. Not thread-safe.
class Scaler {
 public:
  /// Throws std::runtime_error with FFmpeg's reason for a pixel format that swscale does not read.
  Image convert(const AVFrame& frame, Size size);

 private:
  /// What the tables depend on.
  struct Shape {
    Size from;
    AVPixelFormat format = AV_PIX_FMT_NONE;
    bool full_range = false;
    int matrix = AVCOL_SPC_UNSPECIFIED;
    Size to;
    friend bool operator==(const Shape&, const Shape&) = default;
  };

  void prepare(const Shape& shape);

  std::optional<Shape> shape_;
  ScaleContext context_;
  /// Scaled picture with full chroma on its way to RGB; unused for sources that are RGB themselves.
  std::vector<std::uint8_t> planes_;
};

}  // namespace vigil::media
