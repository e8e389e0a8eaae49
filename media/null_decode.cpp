#include "media/null_decode.h"

#include "media/ffmpeg.h"
#include "media/media.h"

namespace vigil::media {

std::uint64_t null_decode(const std::string& file, int threads, bool vectors) {
  AVFormatContext* raw = nullptr;
  if (avformat_open_input(&raw, file.c_str(), nullptr, nullptr) < 0) throw Error(file + ": cannot open");
  const InputContext input(raw);
  avformat_find_stream_info(raw, nullptr);
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(raw, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (index < 0) throw Error(file + ": no video");
  for (unsigned i = 0; i < raw->nb_streams; ++i) {
    if (static_cast<int>(i) != index) raw->streams[i]->discard = AVDISCARD_ALL;
  }
  const CodecContext context = allocated(CodecContext(avcodec_alloc_context3(codec)));
  avcodec_parameters_to_context(context.get(), raw->streams[index]->codecpar);
  context->thread_count = threads;
  if (vectors) context->export_side_data |= AV_CODEC_EXPORT_DATA_MVS;
  if (avcodec_open2(context.get(), codec, nullptr) < 0) throw Error(file + ": cannot decode");
  const Packet packet = make_packet();
  const Frame frame = make_frame();
  std::uint64_t frames = 0;
  while (true) {
    const int code = avcodec_receive_frame(context.get(), frame.get());
    if (code == AVERROR_EOF) break;
    if (code >= 0) {
      ++frames;
      continue;
    }
    if (av_read_frame(raw, packet.get()) < 0) {
      avcodec_send_packet(context.get(), nullptr);
    } else {
      if (packet->stream_index == index) avcodec_send_packet(context.get(), packet.get());
      av_packet_unref(packet.get());
    }
  }
  return frames;
}

}  // namespace vigil::media
