#include "media/packet_reader.h"

#include "media/ffmpeg.h"
#include "media/input.h"

namespace vigil::media {
namespace {

class Reader final : public PacketReader {
 public:
  Reader(const std::string& url, const ReadOptions& options)
      : input_(url, options), packet_(allocated(Packet(av_packet_alloc()))) {}

  std::optional<KeptPacket> next() override {
    while (true) {
      switch (input_.read(*packet_)) {
        case Input::Read::packet:
          return told();
        case Input::Read::damaged:
          continue;
        case Input::Read::end:
          broken_by_ = input_.damage();
          return std::nullopt;
      }
    }
  }

  const std::string& broken_by() const override { return broken_by_; }

 private:
  KeptPacket told() const {
    const std::int64_t timestamp = packet_->pts != AV_NOPTS_VALUE ? packet_->pts : packet_->dts;
    KeptPacket kept;
    kept.key = (packet_->flags & AV_PKT_FLAG_KEY) != 0;
    if (timestamp == AV_NOPTS_VALUE) return kept;
    kept.timestamp = timestamp;
    kept.seconds = static_cast<double>(timestamp) * av_q2d(input_.stream().time_base);
    return kept;
  }

  Input input_;
  Packet packet_;
  std::string broken_by_;
};

}  // namespace

std::unique_ptr<PacketReader> PacketReader::open(const std::string& url, const ReadOptions& options) {
  return std::make_unique<Reader>(url, options);
}

}  // namespace vigil::media
