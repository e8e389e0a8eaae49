#include "engine/kv/history/page_key.h"

#include <cstddef>
#include <type_traits>

namespace vigil::history {
namespace {

constexpr char kEscaped = '\xFF';
constexpr char kNameEnd = '\x01';

void put_name(std::string& bytes, std::string_view name) {
  for (const char byte : name) {
    bytes.push_back(byte);
    if (byte == '\0') bytes.push_back(kEscaped);
  }
  bytes.push_back('\0');
  bytes.push_back(kNameEnd);
}

template <class T>
void put_highest_first(std::string& bytes, T value) {
  for (std::size_t i = sizeof(T); i-- > 0;) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

/// Takes from the front of a key.
class KeyReader {
 public:
  explicit KeyReader(std::string_view bytes) : rest_(bytes) {}

  std::string name() {
    std::string result;
    for (std::size_t i = 0; i + 1 < rest_.size(); ++i) {
      if (rest_[i] != '\0') {
        result.push_back(rest_[i]);
      } else if (rest_[++i] == kEscaped) {
        result.push_back('\0');
      } else {
        failed_ = failed_ || rest_[i] != kNameEnd;
        rest_.remove_prefix(i + 1);
        return result;
      }
    }
    failed_ = true;
    return result;
  }
  template <class T>
  T number() {
    static_assert(std::is_unsigned_v<T>);
    if (failed_ || rest_.size() < sizeof(T)) {
      failed_ = true;
      return 0;
    }
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8U | static_cast<unsigned char>(rest_[i]);
    rest_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  CameraId camera() {
    std::string tenant = name();
    return {std::move(tenant), name()};
  }
  HourKey hour() {
    CameraId of = camera();
    return {std::move(of), number<std::uint32_t>()};
  }
  PartKey part() {
    HourKey of = hour();
    return {std::move(of), number<std::uint64_t>()};
  }
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

template <class T>
std::optional<T> whole(const KeyReader& reader, T key) {
  if (!reader.done()) return std::nullopt;
  return key;
}

}  // namespace

std::string encode(const CameraId& camera) {
  std::string bytes;
  put_name(bytes, camera.tenant);
  put_name(bytes, camera.camera);
  return bytes;
}

std::string encode(const HourKey& key) {
  std::string bytes = encode(key.camera);
  put_highest_first(bytes, key.hour);
  return bytes;
}

std::string encode(const PartKey& key) {
  std::string bytes = encode(key.hour);
  put_highest_first(bytes, key.part);
  return bytes;
}

std::string encode(const PageKey& key) {
  std::string bytes = encode(key.part);
  put_highest_first(bytes, key.layers.first);
  put_highest_first(bytes, key.layers.count);
  put_highest_first(bytes, key.page);
  return bytes;
}

std::optional<CameraId> decode_camera(std::string_view bytes) {
  KeyReader reader(bytes);
  CameraId key = reader.camera();
  return whole(reader, std::move(key));
}

std::optional<HourKey> decode_hour_key(std::string_view bytes) {
  KeyReader reader(bytes);
  HourKey key = reader.hour();
  return whole(reader, std::move(key));
}

std::optional<PartKey> decode_part_key(std::string_view bytes) {
  KeyReader reader(bytes);
  PartKey key = reader.part();
  return whole(reader, std::move(key));
}

std::optional<PageKey> decode_page_key(std::string_view bytes) {
  KeyReader reader(bytes);
  PageKey key;
  key.part = reader.part();
  key.layers.first = reader.number<std::uint16_t>();
  key.layers.count = reader.number<std::uint16_t>();
  key.page = reader.number<std::uint64_t>();
  return whole(reader, std::move(key));
}

}  // namespace vigil::history
