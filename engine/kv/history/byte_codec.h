// Numbers and stretches of bytes, one after the other: little-endian, and read without ever going beyond.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace vigil::history {

/// Appends to a string. Not thread-safe.
class ByteWriter {
 public:
  explicit ByteWriter(std::string& bytes) : bytes_(bytes) {}

  /// All bytes of an unsigned integer, the lowest first.
  template <class T>
  void fixed(T value) {
    static_assert(std::is_unsigned_v<T>);
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
  }
  /// Seven bits a byte, the lowest first; the highest bit says that more follow.
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7U) bytes_.push_back(static_cast<char>(value | 0x80U));
    bytes_.push_back(static_cast<char>(value));
  }
  /// One that is near zero on either side.
  void near_zero(std::uint64_t value) {
    const bool negative = (value >> 63U) != 0;
    number(negative ? ~(value << 1U) : value << 1U);
  }
  void real(double value) { fixed(std::bit_cast<std::uint64_t>(value)); }
  void text(std::string_view bytes) { bytes_ += bytes; }

 private:
  std::string& bytes_;
};

/// Takes from the front, and remembers if there was not enough, or a number was not as a writer makes it:
/// what is taken from then on is zero, and of no use. Not thread-safe; the bytes have to outlive it.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  template <class T>
  T fixed() {
    static_assert(std::is_unsigned_v<T>);
    const std::string_view bytes = text(sizeof(T));
    T value = 0;
    for (std::size_t i = bytes.size(); i-- > 0;)
      value = static_cast<T>(static_cast<std::uint64_t>(value) << 8U | static_cast<unsigned char>(bytes[i]));
    return value;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if ((byte & 0x80U) != 0) continue;
      // One way to write each, and none beyond 64 bits.
      if ((byte == 0 && shift > 0) || (shift == 63 && byte > 1)) failed_ = true;
      return failed_ ? 0 : value;
    }
    failed_ = true;
    return 0;
  }
  std::uint64_t near_zero() {
    const std::uint64_t value = number();
    return (value & 1U) != 0 ? ~(value >> 1U) : value >> 1U;
  }
  double real() { return std::bit_cast<double>(fixed<std::uint64_t>()); }
  std::string_view text(std::uint64_t bytes) {
    if (failed_ || bytes > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view taken = rest_.substr(0, bytes);
    rest_.remove_prefix(bytes);
    return taken;
  }
  /// What was read makes no sense.
  void fail() { failed_ = true; }

  std::size_t left() const { return failed_ ? 0 : rest_.size(); }
  bool failed() const { return failed_; }
  /// All was taken, and all of it was there.
  bool done() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

inline std::string_view text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

/// To the front of `to`, which has room; returns what is behind them.
inline std::span<std::byte> put(std::span<std::byte> to, std::string_view bytes) {
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return to.subspan(bytes.size());
}

}  // namespace vigil::history
