// How far blocks are from their motion-compensated predictions: CodecSight's equation 2, measured on pixels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "media/ffmpeg.h"
#include "media/motion.h"

namespace vigil::media {

/// The brightness of a decoded frame in 8 bits, whatever depth it has: its luma, of RGB its green. Shares the
/// frame's memory where that has 8 bits, so it must not be written to any more.
class Luma {
 public:
  /// Nothing for formats whose samples cannot be read (of hardware, packed bits, palettes).
  static std::optional<Luma> of(const AVFrame& frame);

  const std::uint8_t* row(int y) const { return data_ + y * stride_; }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  Luma() = default;

  Frame frame_;
  std::vector<std::uint8_t> narrowed_;
  const std::uint8_t* data_ = nullptr;
  std::ptrdiff_t stride_ = 0;
  int width_ = 0, height_ = 0;
};

/// Measures the residual of each block that has a vector, R = Σ|B - B'| over its pixels inside of the
/// picture. B' is predicted on luma from decoded frames: at the vector's place, bilinear between pixels
/// (codecs have longer filters), clamped to the edges, without the weights that H.264 may give a reference,
/// so that a change of the light is seen.
///
/// Which frame a vector refers to, FFmpeg tells by its direction alone. Codecs before H.264, and H.264 with
/// one reference, mean the nearest frame there that is no B-frame. Where a stream has more references,
/// several come into question: the nearest three such frames, and the nearest two B-frames where B-frames may
/// be references; what fits a block best is what its encoder took (and within a level a pixel the nearest is
/// good enough). A block with vectors in both directions is predicted by either or by their mean: FFmpeg
/// tells two where H.264 used one. R is infinite where no frame that comes into question is at hand: at a
/// stream's beginning, after a change of size.
///
/// Frames go in and come out in order of presentation. B-frames come out with the next other frame, to which
/// they refer; all others at once. Holds the pictures of at most 3 + 2 frames of the past, and of 16
/// B-frames. Beside FFmpeg's null decode of the repository's clips (768x432, medians of 7) it costs 0.15 of
/// that more where there is one reference, 0.8 to 1.2 where there are four and B-frames, a part of which is
/// the deblocking of frames that are spared it otherwise. Not thread-safe.
class ResidualMeter {
 public:
  /// `references`: pictures that the stream's predictions may refer to at once, as its codec tells by now
  /// (AVCodecContext::refs). Intra frames pass as they are; so does what has no luma, without a residual.
  void push(const AVFrame& frame, FrameMotion motion, int references);

  /// No frame comes any more: what waits is measured with what is there.
  void finish();

  /// The next frame, with `FrameMotion::residual`, if it is measured.
  std::optional<FrameMotion> pop();

 private:
  struct Held {
    FrameMotion motion;
    std::optional<Luma> luma;
    bool bidirectional = false;
  };
  /// The frames that vectors of one direction may refer to.
  using References = std::vector<const Luma*>;
  /// A block as it is predicted best in one direction.
  struct Prediction {
    std::optional<std::uint32_t> difference;
    std::vector<std::uint8_t> pixels;
  };

  void measure_waiting();
  void measure(Held& frame, std::span<const Held> later);
  void remember(Held frame);
  void predict(const Luma& picture, const MotionVector& block, const References& references,
               bool keeps_pixels, Prediction& best);

  std::deque<FrameMotion> measured_;
  /// B-frames without the frame after them, and that one.
  std::vector<Held> waiting_;
  /// The nearest first.
  std::deque<Luma> past_, past_bidirectional_;
  int references_ = 1;
  bool reorders_ = false;
  /// What is predicted of a block, and what a prediction beyond the edges is made of.
  std::vector<std::uint8_t> pixels_, clamped_;
  Prediction backward_, forward_;
};

}  // namespace vigil::media
