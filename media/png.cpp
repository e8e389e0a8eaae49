#include "media/png.h"

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <system_error>

#include "media/ffmpeg.h"

namespace vigil::media {
namespace {

void must(int code, const std::string& path) {
  if (code < 0) throw Error(path + ": cannot encode as PNG: " + reason_of(code));
}

}  // namespace

void write_png(const std::string& path, const Image& image) {
  const AVCodec* codec = avcodec_find_encoder(AV_CODEC_ID_PNG);
  if (codec == nullptr) throw Error(path + ": this FFmpeg has no PNG encoder");
  const CodecContext encoder = allocated(CodecContext(avcodec_alloc_context3(codec)));
  encoder->width = image.size.width;
  encoder->height = image.size.height;
  encoder->pix_fmt = AV_PIX_FMT_RGB24;
  encoder->time_base = {1, 1};
  must(avcodec_open2(encoder.get(), codec, nullptr), path);

  const Frame frame = make_frame();
  frame->format = AV_PIX_FMT_RGB24;
  frame->width = image.size.width;
  frame->height = image.size.height;
  must(av_frame_get_buffer(frame.get(), 0), path);
  const std::size_t line = static_cast<std::size_t>(image.size.width) * 3;
  for (int row = 0; row < image.size.height; ++row) {
    std::memcpy(frame->data[0] + static_cast<std::ptrdiff_t>(row) * frame->linesize[0],
                image.rgb.data() + static_cast<std::size_t>(row) * line, line);
  }
  must(avcodec_send_frame(encoder.get(), frame.get()), path);
  const Packet packet = make_packet();
  must(avcodec_receive_packet(encoder.get(), packet.get()), path);

  errno = 0;
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(packet->data), packet->size);
  file.close();
  if (!file) throw Error(path + ": cannot write: " + std::generic_category().message(errno));
}

}  // namespace vigil::media
