#include "cluster/sockets/zmtp.h"

#include <algorithm>

namespace vigil::cluster {
namespace {

constexpr unsigned kMore = 1;
constexpr unsigned kLong = 2;
constexpr unsigned kCommand = 4;

}  // namespace

// Its body is the name behind its length.
bool ZmtpFrame::is(std::string_view name) const {
  return command && head.size() > name.size() && static_cast<std::size_t>(head.front()) == name.size() &&
         head.substr(1, name.size()) == name;
}

// FF, eight bytes that used to be a length, 7F, the version; the rest is for the peer to judge.
bool ZmtpReader::greeting_goes_on(std::byte byte) {
  switch (read_++) {
    case 0:
      return byte == std::byte{0xff};
    case 9:
      return (byte & std::byte{1}) != std::byte{0};
    case 10:
      return byte >= std::byte{3};
    default:
      return true;
  }
}

ZmtpReader::Result ZmtpReader::finish_length() {
  if (size_ > largest_) return Result::too_large;
  read_ = 0;
  part_ = Part::head;
  return Result::more;
}

ZmtpReader::Result ZmtpReader::next(std::span<const std::byte>& bytes, ZmtpFrame& frame) {
  const auto take = [&bytes] {
    const std::byte byte = bytes.front();
    bytes = bytes.subspan(1);
    return byte;
  };
  for (;;) {
    // An empty frame has begun, and ended, with its length.
    if (part_ == Part::head && read_ == std::min<std::uint64_t>(size_, kHead)) {
      frame = {(flags_ & kMore) != 0, (flags_ & kCommand) != 0, size_, {head_.data(), read_}};
      rest_ = size_ - read_;
      part_ = Part::body;
      return Result::frame;
    }
    if (part_ == Part::body && rest_ == 0) part_ = Part::flags;
    if (bytes.empty()) return Result::more;
    switch (part_) {
      case Part::greeting:
        if (!greeting_goes_on(take())) return Result::foreign;
        if (read_ == kGreeting) part_ = Part::flags;
        break;
      case Part::flags:
        flags_ = std::to_integer<std::uint8_t>(take());
        if ((flags_ & ~(kMore | kLong | kCommand)) != 0) return Result::foreign;
        size_ = 0;
        read_ = 0;
        part_ = Part::length;
        break;
      case Part::length:
        size_ = size_ << 8 | std::to_integer<std::uint64_t>(take());
        if (++read_ == ((flags_ & kLong) != 0 ? 8U : 1U) && finish_length() == Result::too_large)
          return Result::too_large;
        break;
      case Part::head:
        head_[read_++] = static_cast<char>(take());
        break;
      case Part::body: {
        const auto skipped = static_cast<std::size_t>(std::min<std::uint64_t>(rest_, bytes.size()));
        bytes = bytes.subspan(skipped);
        rest_ -= skipped;
        break;
      }
    }
  }
}

}  // namespace vigil::cluster
