// The last packets of a stream, as they came, and what can be cut out of them: clips without re-encoding, and
// stills.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "media/media.h"

struct AVPacket;
struct AVStream;

namespace vigil::media {

/// What to cut out of a stream, in its time: a stretch, and the moment within that has to be there.
struct Span {
  double from = 0;
  double to = 0;
  double moment = 0;
};

struct Still {
  Image image;
  /// Time of the frame.
  double seconds = 0;
};

/// Packets of one stretch of a stream, the first a key frame. Immutable; shares the packets with the history
/// that it was cut from, and outlives it. Thread-safe.
class Cut {
 public:
  struct Content;
  explicit Cut(std::shared_ptr<const Content> content) : content_(std::move(content)) {}

  /// Time of the first frame, and until when the last one is shown.
  double from() const;
  double to() const;
  /// Of all packets.
  std::size_t bytes() const;
  /// FFmpeg's name of it.
  std::string codec() const;
  /// Of the clip's file: ".mp4", or ".mkv" for a codec that MP4 does not take.
  std::string extension() const;

  /// Writes the packets, which are not decoded, with timestamps that start at 0; an MP4 can be played while
  /// it is being fetched. The file appears whole or not at all. `note`: a text that the file has in its
  /// header (`note_of`); none if it is empty. Throws `Error` with its name and the reason.
  void write_clip(const std::filesystem::path& path, const std::string& note = {}) const;

  /// The frame that is shown at `moment`, or the first one after it, in its own size. Decodes from the last
  /// key frame before. Throws `Error` if there is none.
  Still still(double moment) const;

 private:
  std::shared_ptr<const Content> content_;
};

/// The text that a clip was written with; empty if there was none. Reads its header alone, and decodes
/// nothing. Throws `Error` with the file's name for what is no clip.
std::string note_of(const std::filesystem::path& clip);

/// A bounded memory of a stream's packets. One thread writes (`begin`, `push`, `anchor`); any may read.
///
/// Packets are dropped from the oldest on, a whole group of pictures at a time, so that what is kept begins
/// with a key frame. What comes before the first key frame is not kept. A stream that begins again, or goes
/// on at another size or with other parameters, starts a new section; nothing is cut across two.
///
/// Only decoding finds out the time of a frame (media/timeline.h), and its caller may count time in its own
/// way. So whoever reads the frames tells the time of some of them (`anchor`), and the packets between them
/// have theirs by the source's timestamps. Without any anchor a section cannot be cut.
class PacketHistory {
 public:
  struct Limits {
    /// So much of the stream is kept, and up to one group of pictures more ...
    double seconds = 60;
    /// ... as long as it has no more bytes than this. If not even one group of pictures fits, nothing is kept
    /// before the next key frame.
    std::size_t bytes = std::size_t{64} << 20;
  };

  explicit PacketHistory(Limits limits);
  ~PacketHistory();
  PacketHistory(const PacketHistory&) = delete;
  PacketHistory& operator=(const PacketHistory&) = delete;

  /// For the room's own reader: a source was opened, and these are its packets. `decoder_memory`: what a
  /// still may take to be decoded (ReadOptions).
  void begin(const AVStream& stream, std::size_t decoder_memory = kDecoderMemory);
  void push(const AVPacket& packet);

  /// The frame with this timestamp (`SampledFrame::timestamp`) is at `seconds` of the stream.
  void anchor(std::optional<std::int64_t> timestamp, double seconds);

  /// So much of the stream is kept from now on.
  void keep(double seconds);

  /// Every frame before this time has come; nothing while there is no anchor.
  std::optional<double> newest() const;
  /// Of the packets that are kept.
  std::size_t bytes() const;
  void clear();

  /// From the last key frame at or before `from` (or the first one after it that is kept) to `to`, or to the
  /// end of the section. Throws `Error` if the moment is not kept, with the reason.
  Cut cut(const Span& span) const;

 private:
  struct Section;
  class Shape;

  void drop_old();
  void drop_front_group();
  std::string why_not_kept() const;

  Limits limits_;
  // Of the writing thread.
  std::unique_ptr<Shape> shape_;

  mutable std::mutex mutex_;
  std::list<Section> sections_;
  std::size_t bytes_ = 0;
  /// Counts sources.
  std::uint64_t source_ = 0;
  /// The byte limit has cost more than what is old.
  bool short_of_bytes_ = false;
};

}  // namespace vigil::media
