#include "tests/media/clip.h"

#include <unistd.h>

extern "C" {
#include <libavutil/motion_vector.h>
#include <libavutil/opt.h>
}

#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace vigil::media {
namespace {

void must(int code, const std::string& what) {
  if (code < 0) throw std::runtime_error(what + ": " + reason_of(code));
}

// One component's value at a place; smooth enough to code well, rich enough that motion search finds the
// square.
std::uint8_t texture(int x, int y, int component) {
  const double value =
      128 + 50 * std::sin(x * 0.11 + component) * std::cos(y * 0.07) + 30 * std::sin((x + 2 * y) * 0.31);
  return static_cast<std::uint8_t>(value);
}

void paint(AVFrame& frame, int index) {
  for (int plane = 0; plane < 3; ++plane) {
    const bool full = frame.format == AV_PIX_FMT_YUV444P || frame.format == AV_PIX_FMT_GBRP;
    const int shift = plane == 0 || full ? 0 : 1;
    const int width = frame.width >> shift;
    const int height = frame.height >> shift;
    const int left = (16 + 4 * index) % (frame.width - 48);
    const int top = (8 + 2 * index) % (frame.height - 48);
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int fx = (x << shift) - left;
        const int fy = (y << shift) - top;
        const bool inside = fx >= 0 && fx < 48 && fy >= 0 && fy < 48;
        const std::uint8_t value =
            inside ? texture(7 * fx + 31, 5 * fy, plane + 1) : texture(x << shift, y << shift, plane);
        frame.data[plane][y * frame.linesize[plane] + x] = value;
      }
    }
  }
}

void paint_grey(AVFrame& frame, int index, const Clip& clip) {
  for (int plane = 0; plane < 3; ++plane) {
    const int shift = plane == 0 ? 0 : 1;
    for (int y = 0; y < (frame.height + shift) >> shift; ++y)
      for (int x = 0; x < (frame.width + shift) >> shift; ++x)
        frame.data[plane][y * frame.linesize[plane] + x] =
            static_cast<std::uint8_t>(plane == 0 ? clip.brightness(index, x, y) : 128);
  }
}

std::uint64_t hash(int centre_x, int centre_y, int width, int height, int dx, int dy, int scale, int source) {
  std::uint64_t value = 1469598103934665603ULL;
  for (const int part : {centre_x, centre_y, width, height, dx, dy, scale, source}) {
    value = (value ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(part))) * 1099511628211ULL;
  }
  return value;
}

}  // namespace

void write_clip(const std::string& path, const Clip& clip) {
  av_log_set_level(AV_LOG_ERROR);  // x264 tells a lot
  const AVCodec* codec = avcodec_find_encoder_by_name(clip.codec.c_str());
  if (codec == nullptr) throw std::runtime_error("no encoder " + clip.codec);
  AVFormatContext* raw = nullptr;
  must(avformat_alloc_output_context2(
           &raw, nullptr, clip.container.empty() ? nullptr : clip.container.c_str(), path.c_str()),
       path);
  const OutputContext output(raw);
  const CodecContext encoder = allocated(CodecContext(avcodec_alloc_context3(codec)));
  encoder->width = clip.size.width;
  encoder->height = clip.size.height;
  encoder->pix_fmt = clip.format;
  encoder->colorspace = clip.matrix;
  encoder->color_range = clip.range;
  // MPEG-1 and 2 take only the usual rates.
  encoder->time_base = clip.time ? AVRational{1, 1000} : AVRational{1, 25};
  encoder->framerate = AVRational{25, 1};
  encoder->gop_size = clip.gop;
  encoder->max_b_frames = clip.b_frames;
  encoder->bit_rate = 800000;
  encoder->thread_count = 1;
  if ((output->oformat->flags & AVFMT_GLOBALHEADER) != 0) encoder->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
  if (clip.codec == "libx264") {
    av_opt_set(encoder->priv_data, "preset", "veryfast", 0);
    av_opt_set_int(encoder->priv_data, "sc_threshold", 0, 0);
    av_opt_set(encoder->priv_data, "x264-params", "scenecut=0", 0);
  }
  for (const auto& [key, value] : clip.options) {
    must(av_opt_set(encoder.get(), key.c_str(), value.c_str(), AV_OPT_SEARCH_CHILDREN), key);
  }
  must(avcodec_open2(encoder.get(), codec, nullptr), clip.codec);

  AVStream* stream = avformat_new_stream(raw, nullptr);
  must(avcodec_parameters_from_context(stream->codecpar, encoder.get()), path);
  stream->time_base = encoder->time_base;
  stream->avg_frame_rate = encoder->framerate;
  for (const auto& [key, value] : clip.muxer_options) {
    must(av_opt_set(raw, key.c_str(), value.c_str(), AV_OPT_SEARCH_CHILDREN), key);
  }
  must(avio_open(&raw->pb, path.c_str(), AVIO_FLAG_WRITE), path);
  must(avformat_write_header(raw, nullptr), path);

  const Frame frame = make_frame();
  frame->format = clip.format;
  frame->width = clip.size.width;
  frame->height = clip.size.height;
  frame->colorspace = clip.matrix;
  frame->color_range = clip.range;
  must(av_frame_get_buffer(frame.get(), 0), path);
  const Packet packet = make_packet();
  for (int i = 0; i <= clip.frames; ++i) {
    if (i < clip.frames) {
      must(av_frame_make_writable(frame.get()), path);
      if (clip.brightness) {
        paint_grey(*frame, i, clip);
      } else {
        paint(*frame, i);
      }
      frame->pts = clip.time ? clip.time(i) : i;
    }
    must(avcodec_send_frame(encoder.get(), i < clip.frames ? frame.get() : nullptr), clip.codec);
    while (avcodec_receive_packet(encoder.get(), packet.get()) >= 0) {
      av_packet_rescale_ts(packet.get(), encoder->time_base, stream->time_base);
      packet->stream_index = 0;
      must(av_interleaved_write_frame(raw, packet.get()), path);
    }
  }
  must(av_write_trailer(raw), path);
  must(avio_closep(&raw->pb), path);
}

std::string read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::vector<OracleFrame> oracle_decode(const std::string& path,
                                       const std::function<void(const AVFrame&)>& look) {
  AVFormatContext* raw = nullptr;
  must(avformat_open_input(&raw, path.c_str(), nullptr, nullptr), path);
  const InputContext input(raw);
  must(avformat_find_stream_info(raw, nullptr), path);
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(raw, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  must(index, path);
  const AVStream& stream = *raw->streams[index];
  const CodecContext context = allocated(CodecContext(avcodec_alloc_context3(codec)));
  must(avcodec_parameters_to_context(context.get(), stream.codecpar), path);
  context->export_side_data |= AV_CODEC_EXPORT_DATA_MVS;
  context->pkt_timebase = stream.time_base;
  must(avcodec_open2(context.get(), codec, nullptr), path);

  std::vector<OracleFrame> frames;
  const Packet packet = make_packet();
  const Frame frame = make_frame();
  while (true) {
    const int code = avcodec_receive_frame(context.get(), frame.get());
    if (code == AVERROR_EOF) break;
    if (code >= 0) {
      OracleFrame seen;
      seen.timestamp = frame->best_effort_timestamp;
      seen.seconds = static_cast<double>(seen.timestamp) * av_q2d(stream.time_base);
      seen.duration = static_cast<double>(duration_of(*frame)) * av_q2d(stream.time_base);
      seen.type = av_get_picture_type_char(frame->pict_type);
      seen.size = {frame->width, frame->height};
      if (const auto* side = av_frame_get_side_data(frame.get(), AV_FRAME_DATA_MOTION_VECTORS)) {
        const auto* vectors = reinterpret_cast<const AVMotionVector*>(side->data);
        seen.vectors = side->size / sizeof(AVMotionVector);
        for (std::size_t i = 0; i < seen.vectors; ++i) {
          const AVMotionVector& v = vectors[i];
          seen.vectors_hash +=
              hash(v.dst_x, v.dst_y, v.w, v.h, v.motion_x, v.motion_y, v.motion_scale, v.source < 0 ? -1 : 1);
        }
      }
      frames.push_back(seen);
      if (look) look(*frame);
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

std::uint64_t vectors_hash(const FrameMotion& motion) {
  std::uint64_t sum = 0;
  for (const MotionVector& v : motion.vectors) {
    sum += hash(v.x + v.width / 2, v.y + v.height / 2, v.width, v.height, v.dx, v.dy, v.scale,
                v.reference < 0 ? -1 : 1);
  }
  return sum;
}

Image oracle_rgb(const AVFrame& frame, Size size) {
  const ScaleContext context(sws_getContext(
      frame.width, frame.height, static_cast<AVPixelFormat>(frame.format), size.width, size.height,
      AV_PIX_FMT_RGB24, SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP, nullptr,
      nullptr, nullptr));
  if (!context) throw std::runtime_error("swscale");
  const int* coefficients = sws_getCoefficients(frame.colorspace);
  sws_setColorspaceDetails(context.get(), coefficients, frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0,
                           coefficients, 1, 0, 1 << 16, 1 << 16);
  Image image;
  image.size = size;
  image.rgb.resize(static_cast<std::size_t>(size.width) * static_cast<std::size_t>(size.height) * 3);
  const std::array<std::uint8_t*, 4> data = {image.rgb.data()};
  const std::array<int, 4> lines = {size.width * 3};
  sws_scale(context.get(), frame.data, frame.linesize, 0, frame.height, data.data(), lines.data());
  return image;
}

double mean_difference(const Image& a, const Image& b) {
  if (a.size != b.size || a.rgb.size() != b.rgb.size())
    throw std::runtime_error("pictures of different sizes");
  double sum = 0;
  for (std::size_t i = 0; i < a.rgb.size(); ++i) sum += std::abs(int{a.rgb[i]} - int{b.rgb[i]});
  return sum / static_cast<double>(a.rgb.size());
}

ReadResult read_all(const std::string& path, const ReadOptions& options) {
  ReadResult result;
  const auto reader = VideoReader::open(path, options);
  while (auto sample = reader->next()) result.samples.push_back(std::move(*sample));
  result.info = reader->info();
  result.stats = reader->stats();
  return result;
}

std::string error_of(const std::string& path, const ReadOptions& options) {
  try {
    read_all(path, options);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace vigil::media
