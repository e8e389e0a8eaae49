// The framing of ZMTP 3 (https://rfc.zeromq.org/spec/23), as far as somebody in the middle can read it: where
// frames begin, how long they are, and how those begin that are not encrypted.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace vigil::cluster {

/// What is known of a frame as soon as it has begun.
struct ZmtpFrame {
  /// Whether other parts of the same message follow.
  bool more = false;
  bool command = false;
  std::uint64_t size = 0;
  /// The first bytes of its body, as many as the longest name of a command needs.
  std::string_view head;

  /// Whether it is the command of this name.
  bool is(std::string_view name) const;
};

/// Takes one direction of a connection apart, however it is cut into pieces. Keeps a few bytes. Not
/// thread-safe.
class ZmtpReader {
 public:
  enum class Result : std::uint8_t {
    frame,
    /// All bytes were read, and a frame or the greeting goes on.
    more,
    /// Not ZMTP 3 or a later version.
    foreign,
    /// A frame whose header says that it has more than `largest` bytes.
    too_large
  };

  explicit ZmtpReader(std::uint64_t largest) : largest_(largest) {}

  /// Reads up to the next frame's beginning, and takes what was read off `bytes`. After `foreign` or
  /// `too_large` there is nothing more to read.
  Result next(std::span<const std::byte>& bytes, ZmtpFrame& frame);

 private:
  enum class Part : std::uint8_t { greeting, flags, length, head, body };
  static constexpr std::size_t kGreeting = 64;
  static constexpr std::size_t kHead = 10;

  bool greeting_goes_on(std::byte byte);
  Result finish_length();

  std::uint64_t largest_;
  Part part_ = Part::greeting;
  /// Bytes of the part that were read.
  std::size_t read_ = 0;
  std::uint8_t flags_ = 0;
  std::uint64_t size_ = 0;
  /// Bytes of the body that are still to come after its head.
  std::uint64_t rest_ = 0;
  std::array<char, kHead> head_{};
};

}  // namespace vigil::cluster
