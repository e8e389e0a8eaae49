// Bulk bytes between the nodes of a fleet: pixels of patches, visual tokens, pages of keys and values.
// Messages of a few KiB to some 10 MiB, in order, with credits of the receiver, so that nothing piles up
// anywhere. No sockets here: `socket_bulk.h` and `memory_bulk.h` are what stands behind it.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/bulk/bytes.h"

namespace vigil::cluster {

/// Options or peers that make no sense, or an endpoint that cannot be had: one line, without keys.
class BulkError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct BulkMessage {
  /// A few bytes whose meaning is the sender's and the receiver's.
  std::string header;
  std::vector<Bytes> parts;

  /// What it counts for: its header and its parts.
  std::uint64_t bytes() const {
    std::uint64_t sum = header.size();
    for (const Bytes& part : parts) sum += part.size();
    return sum;
  }
};

/// Of one peer and one direction. What we grant a peer that sends to us, and what we have under way to it at
/// most, whatever it grants.
struct BulkLimits {
  /// Sent, and the receipt not let go: bytes, and messages.
  std::uint64_t bytes = 64 << 20;
  std::uint32_t messages = 256;
  /// Of one message, its header included; not more than `bytes`.
  std::uint64_t message = 32 << 20;
  std::uint64_t header = 16 << 10;
  std::uint32_t parts = 1024;
};

/// Another port, as all of a fleet know it.
struct BulkPeer {
  std::string name;
  /// tcp://ADDRESS:PORT, the address in numbers: a name would have to be looked up while others wait.
  std::string endpoint;
  /// Its public keys (Z85), the newest first; more than one while it changes from one to the next. None where
  /// plain text is spoken.
  std::vector<std::string> keys = {};
  friend bool operator==(const BulkPeer&, const BulkPeer&) = default;
};

/// A peer that was left out of a list, and why, in one line without keys.
struct BulkRefusal {
  std::string peer;
  std::string why;
  friend bool operator==(const BulkRefusal&, const BulkRefusal&) = default;
};

enum class BulkDirection : std::uint8_t { outgoing, incoming };

/// Why a stream ended.
enum class BulkEnd : std::uint8_t {
  /// The connection broke.
  connection,
  /// Nothing was heard for too long.
  silence,
  /// Bytes are not those that were sent.
  checksum,
  /// More was sent than was granted.
  credit,
  /// A message was larger than may be, or had no end; or more was said that nobody had asked for.
  limits,
  /// What came is not of this protocol, or not in its order.
  protocol,
  /// Who it says it is, is not among our peers, or not by this key.
  refused,
  /// The peer began anew.
  superseded,
  /// The peer was taken off the list, or the connection was made by a key that counts no more.
  unlisted,
  /// The port at the other end was destroyed.
  closed
};
inline constexpr std::array kBulkEnds = {
    BulkEnd::connection, BulkEnd::silence, BulkEnd::checksum,   BulkEnd::credit,   BulkEnd::limits,
    BulkEnd::protocol,   BulkEnd::refused, BulkEnd::superseded, BulkEnd::unlisted, BulkEnd::closed};
/// As it is shown, such as "checksum".
std::string_view name_of(BulkEnd end);

/// A stream that ended.
struct BulkReset {
  BulkDirection direction = BulkDirection::outgoing;
  BulkEnd why = BulkEnd::connection;
  /// Of an outgoing one: whatever was taken with a lower number and was not acknowledged is to be considered
  /// lost. It may have arrived all the same.
  std::uint64_t before = 0;
};

class ReceiveAccount;

/// Gives a message's credit back to its sender when it is let go, and acknowledges the message by that; after
/// the end of its stream or its port, it does nothing. Any thread.
class BulkReceipt {
 public:
  BulkReceipt() = default;
  BulkReceipt(std::shared_ptr<ReceiveAccount> account, std::uint64_t stream, std::uint64_t number,
              std::uint64_t bytes)
      : account_(std::move(account)), stream_(stream), number_(number), bytes_(bytes) {}
  BulkReceipt(BulkReceipt&& other) noexcept { swap(other); }
  BulkReceipt& operator=(BulkReceipt&& other) noexcept {
    BulkReceipt taken(std::move(other));
    swap(taken);
    return *this;
  }
  BulkReceipt(const BulkReceipt&) = delete;
  BulkReceipt& operator=(const BulkReceipt&) = delete;
  ~BulkReceipt();

 private:
  void swap(BulkReceipt& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(stream_, other.stream_);
    std::swap(number_, other.number_);
    std::swap(bytes_, other.bytes_);
  }

  std::shared_ptr<ReceiveAccount> account_;
  std::uint64_t stream_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;
};

struct BulkReceived {
  BulkMessage message;
  /// The sender's.
  std::uint64_t number = 0;
  /// To be kept as long as the message's bytes are: they are counted as long as this is there.
  BulkReceipt receipt;
};

/// Hears what happens at a port, on the port's thread, one call after the other: nothing here may block,
/// throw or destroy the port. `BulkPort::send` may be called.
class BulkOwner {
 public:
  virtual ~BulkOwner() = default;

  /// In the order in which they were sent, without gaps while a stream stands.
  virtual void received(const std::string& peer, BulkReceived received) = 0;
  /// The receiver has let go of the receipt. Not in order where the receiver lets go in another one.
  virtual void acknowledged(const std::string& /*peer*/, std::uint64_t /*number*/) {}
  /// A send that found no credit is worth another attempt.
  virtual void room(const std::string& /*peer*/) {}
  /// A stream stands. `incarnation` is another one after each start of the peer.
  virtual void opened(const std::string& /*peer*/, BulkDirection /*direction*/,
                      std::uint64_t /*incarnation*/) {}
  /// A stream that stood has ended; the next one is made by itself. Both sides hear it. What was received
  /// stays good.
  virtual void reset(const std::string& /*peer*/, const BulkReset& /*reset*/) {}
  /// Something that the port was told to do did not work and is tried again: one line, once until it did.
  virtual void trouble(const std::string& /*line*/) {}
};

struct BulkSent {
  enum class Answer : std::uint8_t {
    taken,
    /// To be offered again when `BulkOwner::room` says so.
    no_credit,
    /// The peer has not come, or has gone; `BulkOwner::opened` will tell.
    no_stream,
    /// It never fits: more than our limits, or the peer's.
    too_large,
    unknown_peer
  };
  Answer answer = Answer::unknown_peer;
  /// If it was taken: ascending, one after the other, over all streams to this peer.
  std::uint64_t number = 0;
  explicit operator bool() const { return answer == Answer::taken; }
};

/// Of one peer, since it was first listed.
struct BulkCounters {
  struct Flow {
    bool open = false;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    /// Under way: sent and not acknowledged, or received and the receipt not let go; now, and at most.
    std::uint64_t waiting_messages = 0;
    std::uint64_t waiting_bytes = 0;
    std::uint64_t most_waiting_bytes = 0;
    /// Streams that ended, by BulkEnd.
    std::array<std::uint64_t, kBulkEnds.size()> resets{};

    std::uint64_t of(BulkEnd end) const { return resets[static_cast<std::size_t>(end)]; }
  };
  Flow outgoing;
  Flow incoming;
  /// Sends that found no credit, and how long that lasted until there was some.
  std::uint64_t refused_sends = 0;
  std::chrono::nanoseconds blocked{0};
  /// Attempts at a connection to it, and those that came to nothing, by BulkEnd as far as it said why.
  std::uint64_t dials = 0;
  std::array<std::uint64_t, kBulkEnds.size()> failed_dials{};
};

/// What all ports have in common.
struct BulkOptions {
  /// By which the others know it.
  std::string name;
  BulkLimits limits = {};
  /// Whether parts that come to us carry sums (XXH3, 64 bits). Headers and small parts always do.
  bool checksums = true;
  /// Each side says something that often at least; who says nothing for so long is gone. A message has to
  /// arrive in that time: 32 MiB in 4 s are 8 MiB/s.
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds silence{4000};
  /// How long both sides may take to know each other.
  std::chrono::milliseconds handshake{5000};
  /// Between attempts at a connection: from the first to the longest, twice as long each time, half of it up
  /// to chance.
  std::chrono::milliseconds first_pause{50};
  std::chrono::milliseconds longest_pause{2000};
  /// Of what is up to chance: pauses, and the names of streams.
  std::uint64_t seed = 0;
};

/// A node's end of all its streams: one in each direction to each peer. The receiver of a stream makes the
/// connection, so both have to list each other; they may start in any order. Thread-safe.
class BulkPort {
 public:
  virtual ~BulkPort() = default;

  /// Takes the message, or says why not; never blocks, copies no part of more than a few KiB. The bytes'
  /// owners are let go once they are sent, or never will be, on any thread.
  virtual BulkSent send(const std::string& peer, const BulkMessage& message) = 0;

  /// From now on, these are all. Streams to those that stay go on, unless the key by which they were let in
  /// is listed no more. Those that make no sense are left out, and told; the others are taken. Where two have
  /// one name or one key, it stays with the one that had it, or else is the first's.
  virtual std::vector<BulkRefusal> set_peers(const std::vector<BulkPeer>& peers) = 0;

  /// By peer; of those that are listed.
  virtual std::map<std::string, BulkCounters> counters() const = 0;

  /// Where it listens.
  virtual const std::string& endpoint() const = 0;
};

}  // namespace vigil::cluster
