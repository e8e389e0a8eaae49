// A bound on the memory of decoded pictures: a few kilobytes of a stream can ask for many gigabytes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "media/ffmpeg.h"

namespace vigil::media {

/// A picture of more pixels than this is not decoded: twice those of 8K.
inline constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

/// What a picture holds: its planes, and what codecs keep for each of its pixels beside them (vectors, modes
/// and references of its blocks: HEVC up to three quarters of a byte a pixel). 0 for no picture.
std::size_t bytes_of(const AVFrame& frame);

/// Counts the pictures of one decoder from when they are made to when the last holder lets go of them, be it
/// the decoder or whoever got them from it. Thread-safe, as decoders make pictures on their threads.
class FrameBudget {
 public:
  explicit FrameBudget(std::size_t most)
      : most_(most), held_(std::make_shared<std::atomic<std::size_t>>(0)) {}

  /// For `AVCodecContext::get_buffer2`: makes the frame's buffers, or gives AVERROR(ENOMEM) if they are too
  /// much, or memory is out.
  int make(AVCodecContext& context, AVFrame& frame, int flags) noexcept;

  /// Bytes held now; frames may outlive the budget.
  std::size_t held() const { return *held_; }
  /// Whether a picture was refused.
  bool exceeded() const { return exceeded_; }
  /// Of the refusal, for people.
  std::string reason() const;

 private:
  const std::size_t most_;
  std::shared_ptr<std::atomic<std::size_t>> held_;
  std::atomic<bool> exceeded_ = false;
  std::atomic<int> width_ = 0;
  std::atomic<int> height_ = 0;
};

}  // namespace vigil::media
