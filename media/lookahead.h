// Packets read before they are decoded, so that a frame's time on screen is known before it is decoded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "media/ffmpeg.h"

namespace vigil::media {

/// A short queue of packets in decoding order. Because it holds more packets than the codec reorders, the
/// frame that is presented after the first packet's frame has been seen: its packet is in the queue or was
/// taken out lately.
class Lookahead {
 public:
  /// Full with so many packets, at least 1.
  explicit Lookahead(std::size_t depth) : depth_(depth) {}

  bool full() const { return packets_.size() >= depth_; }
  bool empty() const { return packets_.empty(); }
  void push(Packet packet) { packets_.push_back(std::move(packet)); }

  /// The packet to decode next. Not if empty.
  const AVPacket& front() const { return *packets_.front(); }
  void pop();

  /// The timestamp of the frame presented right after the front packet's. Nothing if it has not been seen, or
  /// if one of the packets has no timestamp: then nobody knows.
  std::optional<std::int64_t> following() const;

 private:
  /// Decoded packets whose timestamps are remembered: H.264 delays a frame by at most 16.
  static constexpr std::size_t kRemembered = 32;

  std::size_t depth_;
  std::deque<Packet> packets_;
  std::deque<std::int64_t> taken_;
};

}  // namespace vigil::media
