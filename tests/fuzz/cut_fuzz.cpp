// Any packets as a clip and as a still: a file that FFmpeg reads again or one line of error, and nothing half
// done.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <unistd.h>

#include "media/ffmpeg.h"
#include "media/packet_history.h"
#include "tests/fuzz/bytes.h"

namespace vigil::media {
namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

const std::filesystem::path& folder() {
  static const std::filesystem::path made = [] {
    std::string name = (std::filesystem::temp_directory_path() / "vigil-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr);
    return std::filesystem::path(name);
  }();
  return made;
}

struct Stream {
  explicit Stream(fuzz::Bytes& bytes)
      : format(allocated(InputContext(avformat_alloc_context()))),
        stream(avformat_new_stream(format.get(), nullptr)) {
    if (stream == nullptr) throw std::bad_alloc();
    static constexpr AVCodecID kCodecs[] = {AV_CODEC_ID_H264,  AV_CODEC_ID_HEVC, AV_CODEC_ID_MJPEG,
                                            AV_CODEC_ID_MPEG4, AV_CODEC_ID_VP8,  AV_CODEC_ID_PNG};
    AVCodecParameters& parameters = *stream->codecpar;
    parameters.codec_type = AVMEDIA_TYPE_VIDEO;
    parameters.codec_id = kCodecs[bytes.number(1) % 6];
    parameters.width = static_cast<int>(bytes.number(2));
    parameters.height = static_cast<int>(bytes.number(2));
    const auto extra = bytes.take(bytes.number(1));
    if (!extra.empty()) {
      parameters.extradata =
          static_cast<std::uint8_t*>(av_mallocz(extra.size() + AV_INPUT_BUFFER_PADDING_SIZE));
      if (parameters.extradata == nullptr) throw std::bad_alloc();
      std::memcpy(parameters.extradata, extra.data(), extra.size());
      parameters.extradata_size = static_cast<int>(extra.size());
    }
    stream->time_base = {1, static_cast<int>(1 + bytes.number(2))};
  }

  InputContext format;
  AVStream* stream;
};

void push_all(PacketHistory& history, fuzz::Bytes bytes) {
  std::int64_t now = 0;
  bool first = true;
  while (!bytes.empty()) {
    const auto flags = bytes.number(1);
    const auto content = bytes.take(bytes.number(2));
    const Packet packet = make_packet();
    if (av_new_packet(packet.get(), static_cast<int>(content.size())) < 0) throw std::bad_alloc();
    if (!content.empty()) std::memcpy(packet->data, content.data(), content.size());
    packet->flags = first || flags % 8 == 0 ? AV_PKT_FLAG_KEY : 0;
    now += static_cast<std::int64_t>(flags / 8);
    packet->pts = now;
    packet->dts = flags % 3 == 0 ? AV_NOPTS_VALUE : now;
    history.push(*packet);
    if (std::exchange(first, false)) history.anchor(packet->pts, 0);
  }
}

void look_at(const PacketHistory& history) {
  const Cut cut = history.cut({0, 100, 1});
  const std::filesystem::path clip = folder() / ("clip" + cut.extension());
  bool written = false;
  try {
    cut.write_clip(clip);
    written = true;
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  require(std::filesystem::exists(clip) == written);
  std::filesystem::remove(clip);
  require(std::filesystem::is_empty(folder()));
  const Still still = cut.still(1);
  require(still.image.rgb.size() == static_cast<std::size_t>(still.image.size.width) *
                                        static_cast<std::size_t>(still.image.size.height) * 3);
}

}  // namespace
}  // namespace vigil::media

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace vigil::media;
  vigil::fuzz::Bytes bytes(data, size);
  const Stream stream(bytes);
  PacketHistory history({100, std::size_t{1} << 20});
  history.begin(*stream.stream, std::size_t{64} << 20);
  push_all(history, bytes);
  try {
    look_at(history);
  } catch (const Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
  return 0;
}
