#include "media/frame_budget.h"

extern "C" {
#include <libavutil/buffer.h>
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <new>

namespace vigil::media {
namespace {

/// Decoders make pictures of whole blocks, and of a little more.
constexpr int kAlignment = 64;

/// A picture's first buffer, with who counts it.
struct Counted {
  AVBufferRef* buffer;
  std::shared_ptr<std::atomic<std::size_t>> held;
  std::size_t bytes;

  static void release(void* self, std::uint8_t*) {
    const std::unique_ptr<Counted> counted(static_cast<Counted*>(self));
    *counted->held -= counted->bytes;
    av_buffer_unref(&counted->buffer);
  }
};

}  // namespace

std::size_t bytes_of(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const int width = FFALIGN(frame.width, kAlignment);
  const int height = FFALIGN(frame.height, kAlignment);
  const int bytes = av_image_get_buffer_size(format, width, height, kAlignment);
  if (bytes < 0) return 0;
  const std::size_t pixels = static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  return static_cast<std::size_t>(bytes) + pixels / 4 * 3;
}

int FrameBudget::make(AVCodecContext& context, AVFrame& frame, int flags) noexcept {
  const std::size_t bytes = bytes_of(frame);
  // FFmpeg's C frames are above: nothing may be thrown. And before anything that would have to be undone.
  std::unique_ptr<Counted> counted(new (std::nothrow) Counted{nullptr, held_, bytes});
  if (!counted) return AVERROR(ENOMEM);
  // Taken before it is looked at: other threads make pictures, too.
  if (held_->fetch_add(bytes) + bytes > most_) {
    *held_ -= bytes;
    width_ = frame.width;
    height_ = frame.height;
    exceeded_ = true;
    return AVERROR(ENOMEM);
  }
  const int code = avcodec_default_get_buffer2(&context, &frame, flags);
  if (code < 0) {
    *held_ -= bytes;
    return code;
  }
  AVBufferRef* buffer = counted->buffer = frame.buf[0];
  AVBufferRef* ours = av_buffer_create(buffer->data, buffer->size, &Counted::release, counted.get(), 0);
  if (ours == nullptr) {
    *held_ -= bytes;
    av_frame_unref(&frame);
    return AVERROR(ENOMEM);
  }
  static_cast<void>(counted.release());
  frame.buf[0] = ours;
  return code;
}

std::string FrameBudget::reason() const {
  return "its pictures of " + std::to_string(width_) + 'x' + std::to_string(height_) +
         " need more memory than the " + std::to_string(most_ >> 20) + " MiB of `decoder_memory`";
}

}  // namespace vigil::media
