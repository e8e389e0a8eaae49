// Any packets with any timestamps, sources that begin again, anchors and cuts: memory stays within its limit,
// a cut begins with a key frame and its times are in order.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "media/cut.h"
#include "media/ffmpeg.h"
#include "media/packet_history.h"
#include "tests/fuzz/bytes.h"

namespace vigil::media {
namespace {

constexpr std::size_t kMostBytes = 4096;

void require(bool holds) {
  if (!holds) std::abort();
}

class Fuzz {
 public:
  explicit Fuzz(fuzz::Bytes bytes) : bytes_(bytes), history_({5, kMostBytes}) { begin(); }

  void run() {
    while (!bytes_.empty()) {
      switch (bytes_.number(1) % 8) {
        case 0:
          begin();
          break;
        case 1:
          history_.anchor(timestamp(), seconds());
          break;
        case 2:
          history_.anchor(std::nullopt, seconds());
          break;
        case 3:
          cut();
          break;
        case 4:
          if (bytes_.number(1) == 0) history_.clear();
          break;
        default:
          push();
      }
      require(history_.bytes() <= kMostBytes);
      if (const auto newest = history_.newest()) require(std::isfinite(*newest));
    }
  }

 private:
  // Near each other, mostly, so that a fuzzer finds streams.
  std::int64_t timestamp() {
    const auto kind = bytes_.number(1);
    if (kind < 200) return now_ += static_cast<std::int64_t>(kind % 50);
    if (kind < 210) return AV_NOPTS_VALUE;
    return static_cast<std::int64_t>(bytes_.number(kind < 230 ? 2 : 8));
  }

  double seconds() { return static_cast<double>(bytes_.number(2)) / 100; }

  void begin() {
    const InputContext format = allocated(InputContext(avformat_alloc_context()));
    AVStream* stream = avformat_new_stream(format.get(), nullptr);
    if (stream == nullptr) throw std::bad_alloc();
    static constexpr AVCodecID kCodecs[] = {AV_CODEC_ID_H264, AV_CODEC_ID_HEVC, AV_CODEC_ID_MJPEG,
                                            AV_CODEC_ID_MPEG4};
    stream->codecpar->codec_type = AVMEDIA_TYPE_VIDEO;
    stream->codecpar->codec_id = kCodecs[bytes_.number(1) % 4];
    stream->time_base = {1, static_cast<int>(1 + bytes_.number(2))};
    stream->avg_frame_rate = {static_cast<int>(bytes_.number(1)), static_cast<int>(bytes_.number(1))};
    history_.begin(*stream);
  }

  void push() {
    const Packet packet = make_packet();
    const auto flags = bytes_.number(1);
    const auto content = bytes_.take(bytes_.number(1));
    if (av_new_packet(packet.get(), static_cast<int>(content.size())) < 0) throw std::bad_alloc();
    if (!content.empty()) std::memcpy(packet->data, content.data(), content.size());
    packet->flags = flags % 4 == 0 ? AV_PKT_FLAG_KEY : 0;
    packet->pts = timestamp();
    packet->dts = flags % 3 == 0 ? packet->pts : timestamp();
    packet->duration = flags % 5 == 0 ? timestamp() : 0;
    history_.push(*packet);
  }

  void cut() {
    Span span{seconds(), seconds(), seconds()};
    try {
      const Cut cut = history_.cut(span);
      require(cut.bytes() <= kMostBytes && std::isfinite(cut.from()) && std::isfinite(cut.to()));
      require(cut.to() >= cut.from() && !cut.extension().empty());
    } catch (const Error& error) {
      require(std::strchr(error.what(), '\n') == nullptr);
    }
  }

  fuzz::Bytes bytes_;
  PacketHistory history_;
  std::int64_t now_ = 0;
};

}  // namespace
}  // namespace vigil::media

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  vigil::media::Fuzz({data, size}).run();
  return 0;
}
