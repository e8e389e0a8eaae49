#include "media/decoder.h"

#include <algorithm>
#include <new>
#include <stdexcept>

#include "media/vectors.h"

namespace vigil::media {
namespace {

/// FFmpeg's H.264 decoder can hold back so many frames.
constexpr int kMostDelayedFrames = 16;
/// While draining, errors without a frame in between must end.
constexpr int kMostDamagedInARow = 100;

// With frame threads FFmpeg's H.264 decoder writes a frame's vectors when it *outputs* the frame, from
// whichever thread decodes then, and without waiting for the thread that still decodes that frame: vectors
// come out missing or stale. A thread works on every n-th packet, so a frame output n packets later than it
// could be has been decoded for sure. MPEG-4's decoder has the same fault and no such knob: one thread. The
// others use slice threads, which are joined.
void make_vectors_complete(AVCodecContext& context, int reorder) {
  if (context.codec_id == AV_CODEC_ID_H264) {
    context.thread_count = std::max(1, std::min(context.thread_count, kMostDelayedFrames - reorder));
    if (context.thread_count > 1) context.has_b_frames = reorder + context.thread_count;
  } else {
    context.thread_type = FF_THREAD_SLICE;
  }
}

DecoderWatch& watch_of(const AVCodecContext& context) {
  return *static_cast<DecoderWatch*>(static_cast<DecoderLog*>(context.opaque));
}

int make_buffers(AVCodecContext* context, AVFrame* frame, int flags) {
  DecoderWatch& watch = watch_of(*context);
  watch.references.store(context->refs, std::memory_order_relaxed);
  return watch.frames.make(*context, *frame, flags);
}

}  // namespace

void DecoderWatch::watch(AVCodecContext& context) {
  // The log finds its way back from the context as well.
  context.opaque = static_cast<DecoderLog*>(this);
  context.max_pixels = kMostPixels;
  context.get_buffer2 = make_buffers;
#if LIBAVCODEC_VERSION_MAJOR < 60  // Later ones take it for granted.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  // Otherwise a decoder's threads would ask for their pictures one after another.
  context.thread_safe_callbacks = 1;
#pragma GCC diagnostic pop
#endif
}

Decoder::Decoder(const AVCodec& codec, const AVStream& stream, int threads, bool motion, std::size_t memory)
    : watch_(std::make_unique<DecoderWatch>(memory)),
      context_(allocated(CodecContext(avcodec_alloc_context3(&codec)))),
      // In HEVC and others a frame that is no reference within its layer may be one for another layer.
      spares_(codec.id == AV_CODEC_ID_H264),
      motion_(motion),
      reorder_(std::clamp(stream.codecpar->video_delay, 0, kMostDelayedFrames)) {
  if (const int code = avcodec_parameters_to_context(context_.get(), stream.codecpar); code < 0) {
    throw std::runtime_error(reason_of(code));
  }
  watch_->watch(*context_);
  context_->pkt_timebase = stream.time_base;
  context_->thread_count = threads;
  // What is cut off, `receive` cuts off, vectors and all.
  context_->apply_cropping = 0;
  if (motion && exports_motion(codec.id)) {
    context_->export_side_data |= AV_CODEC_EXPORT_DATA_MVS;
    make_vectors_complete(*context_, reorder_);
  }
  if (const int code = avcodec_open2(context_.get(), &codec, nullptr); code < 0) {
    last_reason_ = reason_of(code);
    throw std::runtime_error(damage());
  }
}

std::string Decoder::damage() const {
  const std::string logged = watch_->last_error();
  if (logged.empty())
    return last_reason_.empty() ? "parts of a frame were damaged and concealed" : last_reason_;
  return last_reason_.empty() ? logged : last_reason_ + " (" + logged + ")";
}

// Some decoders pass it over like damage, and go on without the picture.
void Decoder::check_memory() const {
  if (watch_->frames.exceeded()) throw std::runtime_error(watch_->frames.reason());
}

Decoder::Result Decoder::rejected(int code) {
  if (code == AVERROR(ENOMEM)) throw std::bad_alloc();
  ++rejected_;
  last_reason_ = reason_of(code);
  return ++failures_in_a_row_ >= kMostDamagedInARow && draining_ ? Result::end : Result::damaged;
}

Decoder::Result Decoder::send(const AVPacket* packet, bool pixels_matter) {
  draining_ = packet == nullptr;
  // The deblocking filter is a fifth of the work; frames that refer to this one would see it, hence
  // "non-reference".
  const AVDiscard spared = spares_ && !pixels_matter ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
  (motion_ ? context_->skip_loop_filter : context_->skip_frame) = spared;
  const int code = avcodec_send_packet(context_.get(), packet);
  check_memory();
  if (code == AVERROR(EAGAIN)) return Result::again;
  if (code == AVERROR_EOF) return Result::end;
  return code < 0 ? rejected(code) : Result::ok;
}

Decoder::Result Decoder::receive(AVFrame& frame) {
  const int code = avcodec_receive_frame(context_.get(), &frame);
  check_memory();
  if (code == AVERROR(EAGAIN)) return Result::again;
  if (code == AVERROR_EOF) return Result::end;
  if (code < 0) return rejected(code);
  if (const int cropped = crop(frame); cropped < 0) return rejected(cropped);
  failures_in_a_row_ = 0;
  return Result::ok;
}

}  // namespace vigil::media
