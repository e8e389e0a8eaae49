#include "actors/alerts/outbox_records.h"

#include <chrono>
#include <stdexcept>

#include "base/fnv1a.h"

namespace vigil::actors {
namespace {

constexpr std::size_t kNumber = 8;
// The first byte of an event with a stamp. An older layout has the highest byte of the sequence there, which
// no topic's count ever reached.
constexpr char kStamped = 3;
constexpr std::string_view kWatermarkMagic = "VIGILWM1";
constexpr std::size_t kIdentityRoom = 64;

void put(std::string& bytes, std::uint64_t value) {
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
}

/// Takes numbers from the front of bytes, and remembers if they ran out.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number() {
    const std::string_view digits = text(kNumber);
    std::uint64_t value = 0;
    for (const char digit : digits) value = value << 8U | static_cast<unsigned char>(digit);
    return value;
  }
  std::string_view text(std::uint64_t length) {
    if (length > bytes_.size() - at_) {
      short_ = true;
      return {};
    }
    const std::string_view result = bytes_.substr(at_, length);
    at_ += length;
    return result;
  }
  std::size_t at() const { return at_; }
  bool ran_out() const { return short_; }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool short_ = false;
};

std::uint64_t number_of(base::Clock::WallTime time) {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch()).count());
}

// The clock counts nanoseconds, so that not every number of microseconds is a time.
std::optional<base::Clock::WallTime> time_of(std::uint64_t number) {
  using std::chrono::microseconds;
  const auto value = static_cast<std::int64_t>(number);
  const auto limit =
      std::chrono::duration_cast<microseconds>(base::Clock::WallTime::max().time_since_epoch()).count();
  if (value > limit || value < -limit) return std::nullopt;
  return base::Clock::WallTime(microseconds(value));
}

}  // namespace

std::string encode_number(std::uint64_t value) {
  std::string bytes;
  put(bytes, value);
  return bytes;
}

std::optional<std::uint64_t> decode_number(std::string_view bytes) {
  if (bytes.size() != kNumber) return std::nullopt;
  return Reader(bytes).number();
}

std::string encode_time(base::Clock::WallTime time) {
  return encode_number(number_of(time));
}

std::optional<base::Clock::WallTime> decode_time(std::string_view bytes) {
  const auto number = decode_number(bytes);
  return number ? time_of(*number) : std::nullopt;
}

std::string position_key(char kind, std::uint64_t position) {
  std::string key(1, kind);
  put(key, position);
  return key;
}

std::optional<std::uint64_t> decode_position_key(std::string_view key) {
  if (key.empty()) return std::nullopt;
  return decode_number(key.substr(1));
}

std::string note_key(std::string_view key) {
  return std::string(1, 'k').append(key);
}

std::string topic_key(std::string_view topic) {
  std::string key(1, 's');
  key += topic;
  return key;
}

std::string index_key(std::string_view topic, std::uint64_t sequence) {
  std::string key(1, 't');
  key += topic;
  key.push_back('\0');
  put(key, sequence);
  return key;
}

std::string encode_event(const OutboxEvent& event, base::Clock::WallTime stamp) {
  std::string bytes(1, kStamped);
  put(bytes, event.sequence);
  put(bytes, number_of(event.time));
  put(bytes, number_of(stamp));
  put(bytes, event.topic.size());
  bytes += event.topic;
  bytes += event.body;
  return bytes;
}

std::optional<OutboxEventHead> decode_event_head(std::string_view bytes) {
  Reader reader(bytes);
  const bool stamped = bytes.starts_with(kStamped);
  if (stamped) reader.text(1);
  OutboxEventHead head;
  head.sequence = reader.number();
  const auto time = time_of(reader.number());
  if (stamped) head.stamp = time_of(reader.number());
  head.topic = reader.text(reader.number());
  head.body = reader.at();
  if (reader.ran_out() || !time || (stamped && !head.stamp)) return std::nullopt;
  head.time = *time;
  return head;
}

std::optional<OutboxEvent> decode_event(std::uint64_t position, std::string_view bytes) {
  const auto head = decode_event_head(bytes);
  if (!head) return std::nullopt;
  return OutboxEvent{position, std::string(head->topic), head->sequence, head->time,
                     std::string(bytes.substr(head->body))};
}

std::string encode_watermark(const Watermark& watermark) {
  if (watermark.identity.size() > kIdentityRoom) {
    throw std::invalid_argument("outbox: an identity that is too long");
  }
  std::string bytes(kWatermarkMagic);
  put(bytes, watermark.counter);
  put(bytes, watermark.position);
  put(bytes, watermark.settled);
  put(bytes, number_of(watermark.time));
  put(bytes, watermark.identity.size());
  bytes += watermark.identity;
  bytes.resize(kWatermarkBytes - kNumber);
  put(bytes, base::fnv1a(bytes));
  return bytes;
}

std::optional<Watermark> decode_watermark(std::string_view bytes) {
  if (bytes.size() != kWatermarkBytes || !bytes.starts_with(kWatermarkMagic)) return std::nullopt;
  const std::string_view content = bytes.substr(0, kWatermarkBytes - kNumber);
  if (decode_number(bytes.substr(content.size())) != base::fnv1a(content)) return std::nullopt;
  Reader reader(content);
  reader.text(kWatermarkMagic.size());
  Watermark watermark;
  watermark.counter = reader.number();
  watermark.position = reader.number();
  watermark.settled = reader.number();
  const auto time = time_of(reader.number());
  watermark.identity = reader.text(reader.number());
  if (reader.ran_out() || !time || watermark.identity.size() > kIdentityRoom) return std::nullopt;
  watermark.time = *time;
  return watermark;
}

}  // namespace vigil::actors
