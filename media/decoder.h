// A video decoder set up for one stream: bounded threads, motion vectors that are complete.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "media/ffmpeg.h"
#include "media/frame_budget.h"
#include "media/log_capture.h"

namespace vigil::media {

/// What a decoder tells while it decodes, and asks before it takes memory. Outlives the context that it
/// watches.
class DecoderWatch final : public DecoderLog {
 public:
  explicit DecoderWatch(std::size_t memory) : frames(memory) {}

  /// Before the context is opened.
  void watch(AVCodecContext& context);

  FrameBudget frames;
  /// AVCodecContext::refs, which threads of FFmpeg's decoders do not tell the context that began them.
  std::atomic<int> references{1};
};

/// Decodes packets of one stream in order. Not thread-safe. FFmpeg's rule holds: receive until `again`, then
/// send one.
class Decoder {
 public:
  enum class Result {
    /// Done: the packet was taken, or a frame was given.
    ok,
    /// The packet, or one before it, could not be decoded. Go on.
    damaged,
    /// No frame without another packet.
    again,
    /// Drained: no frame will come any more.
    end
  };

  /// `motion`: export motion vectors, if the codec can. `memory`: bytes of the pictures that it, and whoever
  /// got them from it, may hold at once. Throws std::runtime_error with FFmpeg's reason.
  Decoder(const AVCodec& codec, const AVStream& stream, int threads, bool motion, std::size_t memory);

  /// Null drains. `pixels_matter` false: the frame will not be looked at, so if no other frame refers to it
  /// its pixels stay rough (its motion is exact), or without motion it is left out altogether.
  /// Throws std::runtime_error when the memory is not enough, as `receive` does.
  Result send(const AVPacket* packet, bool pixels_matter);

  /// A frame in order of presentation.
  Result receive(AVFrame& frame);

  /// Whether `pixels_matter` has any effect: a codec for which leaving out is exact for all other frames.
  bool can_spare_pixels() const { return spares_; }
  /// How many packets a frame may wait for in order to be presented in order, by what the stream says.
  int reorder_depth() const { return reorder_; }
  /// How many pictures its predictions may refer to at once, by what the stream has said so far.
  int references() const { return watch_->references; }

  /// Packets so far that could not be decoded, or only with parts concealed; and what FFmpeg said of the
  /// last.
  std::uint64_t damaged_packets() const { return rejected_ + watch_->concealed(); }
  std::string damage() const;

 private:
  Result rejected(int code);
  void check_memory() const;

  // Outlives the context, which refers to it.
  std::unique_ptr<DecoderWatch> watch_;
  CodecContext context_;
  bool spares_ = false;
  bool motion_ = false;
  int reorder_ = 0;
  bool draining_ = false;
  int failures_in_a_row_ = 0;
  std::uint64_t rejected_ = 0;
  std::string last_reason_;
};

}  // namespace vigil::media
