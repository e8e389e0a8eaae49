#include "media/jpeg.h"

#include <array>
#include <cstdint>
#include <span>

#include "base/durable.h"
#include "media/ffmpeg.h"

namespace vigil::media {
namespace {

/// Of 1 (best) to 31: faces and plates stay readable.
constexpr int kQuality = 3;

void must(int code, const std::filesystem::path& path) {
  if (code < 0) throw Error(path.string() + ": cannot encode as JPEG: " + reason_of(code));
}

/// What a JPEG holds: BT.601, all of 0…255, half of the chroma each way.
Frame as_jpeg_frame(const Image& image, const std::filesystem::path& path) {
  Frame frame = make_frame();
  frame->format = AV_PIX_FMT_YUVJ420P;
  frame->color_range = AVCOL_RANGE_JPEG;
  frame->width = image.size.width;
  frame->height = image.size.height;
  must(av_frame_get_buffer(frame.get(), 0), path);
  const ScaleContext context = allocated(ScaleContext(
      sws_getContext(frame->width, frame->height, AV_PIX_FMT_RGB24, frame->width, frame->height,
                     AV_PIX_FMT_YUVJ420P, SWS_BILINEAR | SWS_ACCURATE_RND, nullptr, nullptr, nullptr)));
  const int* coefficients = sws_getCoefficients(SWS_CS_ITU601);
  sws_setColorspaceDetails(context.get(), coefficients, 1, coefficients, 1, 0, 1 << 16, 1 << 16);
  const std::array<const std::uint8_t*, 4> data = {image.rgb.data()};
  const std::array<int, 4> lines = {image.size.width * 3};
  sws_scale(context.get(), data.data(), lines.data(), 0, frame->height, frame->data, frame->linesize);
  return frame;
}

}  // namespace

void write_jpeg(const std::filesystem::path& path, const Image& image) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_MJPEG);
  if (codec == nullptr) throw Error(path.string() + ": this FFmpeg has no JPEG encoder");
  const CodecContext encoder = allocated(CodecContext(avcodec_alloc_context3(codec)));
  encoder->width = image.size.width;
  encoder->height = image.size.height;
  encoder->pix_fmt = AV_PIX_FMT_YUVJ420P;
  encoder->color_range = AVCOL_RANGE_JPEG;
  encoder->time_base = {1, 1};
  encoder->thread_count = 1;
  encoder->flags |= AV_CODEC_FLAG_QSCALE;
  encoder->global_quality = FF_QP2LAMBDA * kQuality;
  must(avcodec_open2(encoder.get(), codec, nullptr), path);
  const Frame frame = as_jpeg_frame(image, path);
  frame->quality = encoder->global_quality;
  must(avcodec_send_frame(encoder.get(), frame.get()), path);
  const Packet packet = make_packet();
  must(avcodec_receive_packet(encoder.get(), packet.get()), path);
  try {
    base::NewFile file(path);
    file.write(std::span<const unsigned char>(packet->data, static_cast<std::size_t>(packet->size)));
    file.commit();
  } catch (const base::FileError& error) {
    throw Error(error.what());
  }
}

}  // namespace vigil::media
