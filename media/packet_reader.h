// A source's packets, none of which is decoded: for its PacketHistory alone.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "media/media.h"

namespace vigil::media {

/// A packet that was read, and is in the history.
struct KeptPacket {
  /// What the source calls the time of its frame, as `SampledFrame::timestamp`.
  std::optional<std::int64_t> timestamp;
  /// The same in seconds; 0 without a timestamp.
  double seconds = 0;
  bool key = false;
};

/// Not thread-safe; may move between threads between calls. `next` blocks.
class PacketReader {
 public:
  /// As `VideoReader::open`; of the options, those of input, time-outs, `history` and `stop` count. Throws
  /// `Error`.
  static std::unique_ptr<PacketReader> open(const std::string& url, const ReadOptions& options);

  virtual ~PacketReader() = default;

  /// The next packet, or nothing at the end of the source. What is damaged is passed over. Throws `Error` on
  /// a timeout and when cancelled.
  virtual std::optional<KeptPacket> next() = 0;

  /// Why the source ended, if not because all was read.
  virtual const std::string& broken_by() const = 0;
};

}  // namespace vigil::media
