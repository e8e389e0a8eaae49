// The one interface between Vigil and FFmpeg: open a source, decode it once and in order, hand out sampled
// frames.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "media/motion.h"

namespace vigil::media {

/// What went wrong with a source, as one line: the source's name (credentials removed) and FFmpeg's own
/// reason.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Size {
  int width = 0;
  int height = 0;
  friend bool operator==(const Size&, const Size&) = default;
};

/// An RGB picture: `height` rows of `width` pixels of 3 bytes, no padding. Immutable once shared.
struct Image {
  Size size;
  std::vector<std::uint8_t> rgb;
};

/// The coding type of a frame, as its codec tells it.
enum class FrameType : std::uint8_t { unknown, intra, predicted, bidirectional };

/// One frame taken from a source at the wanted rate. Cheap to copy; everything shared is immutable.
struct SampledFrame {
  std::shared_ptr<const Image> image;
  /// Motion of *all* frames decoded after the previous sample, up to and including this one. Never null.
  std::shared_ptr<const MotionField> motion;
  /// The source's name as given to `open`, credentials removed.
  std::shared_ptr<const std::string> source;
  /// Presentation time in seconds after the first frame of the source. Never decreases between samples.
  double seconds = 0;
  /// 0, 1, 2, … over the samples of one reader.
  std::uint64_t sequence = 0;
  FrameType type = FrameType::unknown;
  /// The decoded frame's own size, before scaling.
  Size source_size;
};

/// Maps a decoded frame's size to the size wanted; called once and again whenever the source's size changes.
using SizePolicy = std::function<Size(Size source)>;

struct ReadOptions {
  /// Samples a second. Sample k is the frame shown at `from + k / fps`; a rate above the source's yields
  /// every frame once.
  double fps = 2.0;
  /// Only frames with `from <= seconds < to` are sampled.
  double from = 0;
  std::optional<double> to;
  /// Empty: frames keep the source's size.
  SizePolicy size;
  /// Decoder threads, at least 1.
  int threads = 1;
  /// Whether to export motion vectors; costs decoding time.
  bool motion = true;
};

/// What a source says of itself. Values that the container does not tell are 0 or empty.
struct SourceInfo {
  std::string name;
  std::string container;
  std::string codec;
  std::string profile;
  std::string pixel_format;
  Size size;
  double average_fps = 0;
  double duration_seconds = 0;
  std::int64_t bit_rate = 0;
  /// Whether the decoder can export motion vectors for this codec.
  bool exports_motion = false;
};

/// What happened so far. `damaged_packets` counts packets that the demuxer or decoder rejected and that were
/// passed over.
struct ReadStats {
  std::uint64_t packets = 0;
  std::uint64_t damaged_packets = 0;
  std::uint64_t decoded_frames = 0;
  std::uint64_t sampled_frames = 0;
  std::uint64_t timestamp_jumps = 0;
  std::uint64_t size_changes = 0;
  /// FFmpeg's reason for the last damaged packet, or for an end before the announced one; empty when there
  /// was none.
  std::string last_damage;
};

/// Decodes one source once, in order. Not thread-safe; may move between threads between calls. `next` blocks.
class VideoReader {
 public:
  /// Throws `Error` if there is nothing to decode: missing file, no video stream, unknown codec, no bytes.
  static std::unique_ptr<VideoReader> open(const std::string& url, const ReadOptions& options);

  virtual ~VideoReader() = default;

  virtual const SourceInfo& info() const = 0;

  /// The next sample, or nothing at the end of the source. Damage is counted and passed over; throws `Error`
  /// if the source ends without a single decodable frame.
  virtual std::optional<SampledFrame> next() = 0;

  virtual const ReadStats& stats() const = 0;
};

}  // namespace vigil::media
