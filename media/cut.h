// What a cut holds. Private to the room.
#pragma once

#include <memory>
#include <vector>

#include "media/ffmpeg.h"
#include "media/packet_history.h"

namespace vigil::media {

using Parameters = std::shared_ptr<const AVCodecParameters>;

/// Throws std::bad_alloc.
std::shared_ptr<AVCodecParameters> copy_of(const AVCodecParameters& parameters);

struct Cut::Content {
  Parameters parameters;
  AVRational time_base{1, 1};
  /// How long a frame is usually shown, in units of the time base; at least 1.
  std::int64_t usual_duration = 1;
  /// Of a still (ReadOptions).
  std::size_t decoder_memory = kDecoderMemory;
  /// In decoding order; their timestamps go on where the source's jumped, and each has one of presentation.
  std::vector<Packet> packets;
  /// seconds = timestamp * time_base + offset, near the moment.
  double offset = 0;
  double from = 0;
  double to = 0;
  std::size_t bytes = 0;
};

/// Gives every packet timestamps of decoding that ascend and are never later than those of presentation, as
/// files want them; those that the source has told stay, if they do so already.
void settle_timestamps(std::vector<Packet>& packets);

}  // namespace vigil::media
