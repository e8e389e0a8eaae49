// What crosses between two ports. A parcel is a few frames: the first says what it is, ends in a sum of
// itself (XXH3, 64 bits) and has headers and small parts in it; large parts follow as frames of their own, so
// that nobody copies them. Numbers are little-endian.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "cluster/bulk/bulk.h"
#include "cluster/bulk/receive_account.h"
#include "cluster/bulk/send_account.h"

namespace vigil::cluster {

using Frames = std::vector<Bytes>;

/// The receiver's first word on a connection.
struct BulkHello {
  /// Its own name, and the name of the one that it means.
  std::string from;
  std::string to;
  std::uint64_t incarnation = 0;
  BulkGrant grant;
  /// Of messages that it takes; those under way are the grant's to say.
  BulkLimits limits;
  bool checksums = true;
};

/// The sender's answer.
struct BulkWelcome {
  std::uint64_t incarnation = 0;
  /// Of the first message.
  std::uint64_t number = 0;
};

/// Messages of the sender: those that have numbers one after the other.
struct BulkData {
  std::vector<BulkNumbered> messages;
};

/// The receiver has let go of these, and grants so much more.
struct BulkCredit {
  std::vector<std::uint64_t> numbers;
  BulkGrant more;
};

struct BulkAlive {};

struct BulkBye {
  BulkEnd why = BulkEnd::closed;
};

using BulkParcel = std::variant<BulkHello, BulkWelcome, BulkData, BulkCredit, BulkAlive, BulkBye>;

/// Numbers in one BulkCredit, at most.
inline constexpr std::size_t kCreditNumbers = 500;
/// Of a first frame that is no BulkData, at most.
inline constexpr std::size_t kControlBytes = 8 << 10;
inline constexpr std::size_t kNameBytes = 255;
/// A part up to this size goes in the first frame.
inline constexpr std::size_t kSmallPart = 8 << 10;
/// Small messages go together until the first frame has so many bytes, or so many large parts follow.
inline constexpr std::size_t kTogether = 32 << 10;
inline constexpr std::size_t kFramesTogether = 64;

/// Of a first frame with messages within these limits, at most.
std::uint64_t most_bytes_of_first_frame(const BulkLimits& limits);

Frames encode(const BulkHello& hello);
Frames encode(const BulkWelcome& welcome);
Frames encode(const BulkCredit& credit);
Frames encode(const BulkAlive& alive);
Frames encode(const BulkBye& bye);

/// The messages from `begin` on, as many as go together, one at least; moves `begin` behind them.
Frames encode_together(const std::vector<BulkNumbered>& messages, std::size_t& begin, bool checksums);

/// The parcel, or what is wrong with it: `checksum`, `protocol`, or `limits` where a message is larger than
/// these. `checksums`: whether large parts have to have sums. Parts refer to the frames' bytes.
std::variant<BulkParcel, BulkEnd> decode(const Frames& frames, const BulkLimits& limits, bool checksums);

}  // namespace vigil::cluster
