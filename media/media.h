// The one interface between Vigil and FFmpeg: open a source, decode it once and in order, hand out sampled
// frames.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include "media/motion.h"

namespace vigil::media {

class PacketHistory;

/// What went wrong with a source, as one line: the source's name (credentials removed) and FFmpeg's own
/// reason.
class Error : public std::runtime_error {
 public:
  enum class Kind : std::uint8_t {
    /// The source cannot be opened or holds nothing to decode; trying again may help only for a live source.
    source,
    /// Nothing came within the time that `ReadOptions` allows, or nothing that could be decoded.
    timeout,
    /// The source refused the user and password, or the lack of them.
    unauthorized,
    /// `ReadOptions::stop` was asked to stop.
    cancelled,
    /// This process, or the system, may have no more files open: that says nothing of the source.
    no_descriptor
  };

  explicit Error(const std::string& line, Kind kind = Kind::source) : std::runtime_error(line), kind_(kind) {}

  Kind kind() const { return kind_; }

 private:
  Kind kind_;
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

/// One frame taken from a source at the wanted rate. Cheap to copy; everything shared is immutable.
struct SampledFrame {
  /// Null only if `ReadOptions::pixels` is false.
  std::shared_ptr<const Image> image;
  /// Motion of *all* frames decoded after the previous sample, up to and including this one. Never null.
  std::shared_ptr<const MotionField> motion;
  /// The source's name as given to `open`, credentials removed.
  std::shared_ptr<const std::string> source;
  /// Presentation time in seconds after the first frame of the source. Never decreases between samples.
  double seconds = 0;
  /// What the source calls that time, if it does: how a PacketHistory finds the frame's packet.
  std::optional<std::int64_t> timestamp;
  /// 0, 1, 2, … over the samples of one reader.
  std::uint64_t sequence = 0;
  FrameType type = FrameType::unknown;
  /// The decoded frame's own size, before scaling.
  Size source_size;
};

/// A packet of the video stream as it came, before anything is known of its content.
struct PacketInfo {
  std::size_t bytes = 0;
  /// Whether the container says that decoding can begin here.
  bool key = false;
};

/// How RTP packets of an RTSP source travel. `tcp`: within the RTSP connection, in order and complete.
enum class Transport : std::uint8_t { tcp, udp };

/// How servers are verified, of sources with TLS: by default against the authorities that this system trusts,
/// and by their name. What is not verified is not sent the source's user and password.
struct Tls {
  /// Whom to trust instead, as a file of PEM certificates; empty: those of the system.
  std::string ca_file = {};
  /// Whether to go without.
  bool insecure = false;
};

/// Memory of decoded pictures that one source may have, unless it is said otherwise: enough for 4K with all
/// the references that H.264 allows.
inline constexpr std::size_t kDecoderMemory = std::size_t{512} << 20;

/// Maps a decoded frame's size to the size wanted; called for each sample, since a source's size may change.
using SizePolicy = std::function<Size(Size source)>;

struct ReadOptions {
  /// Samples a second. Sample k is the frame shown at `from + k / fps`; a rate above the source's (or
  /// infinity) yields every frame once. The reader learns how long a frame is shown from the next one: a live
  /// sample comes one frame late.
  double fps = 2.0;
  /// Only frames with `from <= seconds < to` are sampled; the first of them always is. A file that allows it
  /// is entered at the key frame before `from`, and the motion of frames before `from` is not told.
  double from = 0;
  std::optional<double> to = {};
  /// Empty: frames keep the source's size.
  SizePolicy size = {};
  /// Decoder threads, at least 1. `next` itself runs on the caller's.
  int threads = 1;
  /// Whether to export motion vectors; costs decoding time. Without, H.264 frames that no other frame refers
  /// to and that cannot be a sample are not decoded: they do not count as decoded, and their damage is not
  /// seen.
  bool motion = true;
  /// Whether to measure how far predicted blocks are from their predictions (`FrameMotion::residual`), of
  /// codecs that export vectors. Needs `motion`. Costs decoding time; samples of a source with B-frames come
  /// as much later as the next frame that is none.
  bool residual = false;
  /// Whether samples carry pictures.
  bool pixels = true;

  /// What the source is called in errors, in `SourceInfo` and in samples; empty: its URL, credentials
  /// removed.
  std::string shown_name = {};
  /// Whether a playlist (HLS) may be played, of an http or https URL. What it names is fetched from the same
  /// server and from no other.
  bool playlists = false;
  Tls tls = {};
  /// Bytes of decoded pictures that may be held at once, with what codecs keep beside them. What needs more
  /// ends in an `Error`.
  std::size_t decoder_memory = kDecoderMemory;

  /// FFmpeg's name of the demuxer or device ("mpegts", "lavfi"); empty: found from the name and the content.
  /// This and the next one are for code that knows what it opens: no configuration leads here.
  std::string input_format = {};
  /// Options of the protocol and the demuxer under FFmpeg's names, say {"analyzeduration", "500000"}.
  std::map<std::string, std::string> input_options = {};
  /// Of RTSP sources.
  Transport transport = Transport::tcp;
  /// How long opening, and how long the wait for a packet, may last; zero: for ever. What lasts longer ends
  /// in `Error::Kind::timeout`, after which the reader is at its end.
  std::chrono::milliseconds open_timeout{0};
  std::chrono::milliseconds read_timeout{0};
  /// How long packets may come of which none can be decoded, before that ends in `Error::Kind::timeout` too;
  /// zero: for ever. Before a camera's next key frame, which can be minutes away, nothing can be decoded.
  std::chrono::milliseconds frame_timeout{0};
  /// Called for every packet of the video stream as it is read, by the thread that calls `next`.
  std::function<void(const PacketInfo&)> on_packet = {};
  /// Gets every packet of the video stream, if it is not null (media/packet_history.h). It has to be told
  /// when frames are shown.
  std::shared_ptr<PacketHistory> history = {};
  /// Cancels a blocked `open` or `next` from another thread: they throw `Error::Kind::cancelled`.
  std::stop_token stop = {};
};

/// What a source says of itself. Values that the container does not tell are 0 or empty.
struct SourceInfo {
  /// As given to `open`, credentials removed.
  std::string name;
  std::string container;
  std::string codec;
  std::string profile;
  std::string pixel_format;
  Size size;
  double average_fps = 0;
  double duration_seconds = 0;
  /// It comes no faster than it plays: no length is told, or its protocol is for live streams, whatever
  /// length a server tells.
  bool live = false;
  std::int64_t bit_rate = 0;
  /// Whether the decoder can export motion vectors for this codec.
  bool exports_motion = false;
};

/// What happened so far. A source without damage has `damaged_packets == 0` and an empty `last_damage`.
struct ReadStats {
  std::uint64_t packets = 0;
  /// Packets that the demuxer or the decoder rejected or had to mend, and an early end of the source. Passed
  /// over.
  std::uint64_t damaged_packets = 0;
  std::uint64_t decoded_frames = 0;
  std::uint64_t sampled_frames = 0;
  std::uint64_t timestamp_jumps = 0;
  std::uint64_t size_changes = 0;
  /// FFmpeg's reason for the last damaged packet, or for an end before the announced one; empty when there
  /// was none.
  std::string last_damage;
  /// Why the source ended, if not because all was read. That counts as damage too.
  std::string broken_by;
};

/// Decodes one source once, in order. Changes of size are followed; a source whose video goes on as another
/// stream ends there. A live one of which nothing can be decoded any more ends in an `Error`. Not
/// thread-safe; may move between threads between calls. `next` blocks.
class VideoReader {
 public:
  /// `url`: the path of a file; a URL of one of the protocols that admission.cpp lists; or
  /// v4l2:///dev/video0, for which /dev/video0 is short. Nothing else is opened, whatever the text or the
  /// content asks for. Throws `Error` if there is nothing to decode (missing file, no video stream, unknown
  /// codec, no bytes) and std::invalid_argument for options that make no sense.
  static std::unique_ptr<VideoReader> open(const std::string& url, const ReadOptions& options);

  virtual ~VideoReader() = default;

  virtual const SourceInfo& info() const = 0;

  /// The next sample, or nothing at the end of the source. Damage is counted and passed over; throws `Error`
  /// if the source ends without a single decodable frame, on a timeout and when cancelled.
  virtual std::optional<SampledFrame> next() = 0;

  virtual const ReadStats& stats() const = 0;

  /// Motion of the frames decoded after the last sample, which no sample carries. Complete once `next` gave
  /// nothing.
  virtual const std::vector<FrameMotion>& rest() const = 0;
};

}  // namespace vigil::media
