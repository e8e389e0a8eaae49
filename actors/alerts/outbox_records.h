// What the outbox on the disk writes: keys, events, and the watermark beside the database. Bytes to values
// and back, and nothing of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "actors/alerts/outbox.h"

namespace vigil::actors {

/// The layout of the database:
///   "e" + position -> event
///   "p" + position -> "", while the event is not acknowledged
///   "s" + topic -> the topic's last sequence
///   "t" + topic + NUL + sequence -> position
///   "k" + key -> note (programs that know no notes leave them alone)
///   "n" -> the next position
///   "i" -> the identity
///   "u" -> when events without a stamp were taken over from an older layout, if they were
///   "v" -> the version of this layout
/// Numbers in keys are big-endian, so that the store's order is theirs.
inline constexpr std::string_view kOutboxLayout = "3";
/// Its events have no stamps.
inline constexpr std::string_view kOutboxLayoutWithoutStamps = "2";
/// Neither have those of this one, and there is no "t" and no "i".
inline constexpr std::string_view kOutboxLayoutWithoutIndex = "1";

std::string encode_number(std::uint64_t value);
/// Nothing unless these are the 8 bytes of a number.
std::optional<std::uint64_t> decode_number(std::string_view bytes);
std::string encode_time(base::Clock::WallTime time);
std::optional<base::Clock::WallTime> decode_time(std::string_view bytes);

/// "e" or "p" and a position.
std::string position_key(char kind, std::uint64_t position);
/// Nothing unless it is such a key.
std::optional<std::uint64_t> decode_position_key(std::string_view key);
std::string topic_key(std::string_view topic);
std::string note_key(std::string_view key);
std::string index_key(std::string_view topic, std::uint64_t sequence);

/// An event without its body and its position. `topic` is a view of the bytes that it was decoded from.
struct OutboxEventHead {
  std::uint64_t sequence = 0;
  base::Clock::WallTime time;
  /// When it was appended, by the retention clock. Nothing in a record of an older layout.
  std::optional<base::Clock::WallTime> stamp;
  std::string_view topic;
  /// Where the body begins.
  std::size_t body = 0;
};

std::string encode_event(const OutboxEvent& event, base::Clock::WallTime stamp);
/// Nothing if this is no event of this layout or of an older one.
std::optional<OutboxEventHead> decode_event_head(std::string_view bytes);
std::optional<OutboxEvent> decode_event(std::uint64_t position, std::string_view bytes);

/// What a database has to have reached when it is opened.
struct Watermark {
  /// Grows with each one that is written.
  std::uint64_t counter = 0;
  std::string identity;
  /// Of the newest event that was kept.
  std::uint64_t position = 0;
  /// After this position, and up to `position`, no event may be missing; up to it, some were pruned, or were
  /// not there when the outbox was taken over.
  std::uint64_t settled = 0;
  /// The retention clock's time.
  base::Clock::WallTime time;
};

/// A watermark takes so many bytes, whatever it says.
inline constexpr std::size_t kWatermarkBytes = 128;

/// Throws std::invalid_argument if the identity has no room.
std::string encode_watermark(const Watermark& watermark);
/// Nothing unless every byte is as it was written.
std::optional<Watermark> decode_watermark(std::string_view bytes);

}  // namespace vigil::actors
