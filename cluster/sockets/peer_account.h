// What one client of a socket may send, and how fast: the books of a connection, without the connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/duration.h"
#include "cluster/sockets/zmtp.h"

namespace vigil::cluster {

/// Why a connection was closed, or not taken up.
enum class Refusal : std::uint8_t {
  /// As many as may be are open, of all or of its address.
  connections,
  address,
  /// Both sides did not know each other in time, or newer connections needed its place before.
  handshake,
  /// No ZMTP 3: another protocol, or a version before it.
  protocol,
  frame_size,
  message_parts,
  /// It sent more than a client has reason to.
  allowance,
  /// It said nothing for too long.
  silence,
  /// The process has no descriptors left.
  descriptors
};
inline constexpr std::array kRefusals = {Refusal::connections, Refusal::address,    Refusal::handshake,
                                         Refusal::protocol,    Refusal::frame_size, Refusal::message_parts,
                                         Refusal::allowance,   Refusal::silence,    Refusal::descriptors};
/// As it is shown, such as "frame_size".
std::string_view name_of(Refusal refusal);

/// Everything is counted in bytes; a frame counts as many as `least_cost` at least, since a short one costs
/// the receiver more than its bytes.
struct PeerLimits {
  /// Of one frame, without what encryption adds to it.
  std::uint64_t frame = 1024;
  /// Frames of one message. Not seen where frames are encrypted.
  int parts = 1;
  std::uint64_t least_cost = 64;
  /// What may be sent at once, and how much more each second: what is above that is read later.
  double burst = 64 << 10;
  double per_second = 16 << 10;
  /// Beyond that the connection is closed: of all that it ever sends, unless some of it comes back.
  /// Heartbeats do not count if they can be told from the rest.
  double allowance = 16 << 10;
  /// How much of the allowance comes back each second.
  double recovery = 0;
  /// Whether an answer brings it back.
  bool answers_restore = false;
  /// Who says nothing for so long is gone, or has nothing to ask; 0 for any time.
  base::Duration silence{0};
  /// Whether frames are encrypted (CURVE), so that only their sizes can be read.
  bool encrypted = false;
};

/// Of a client that sends requests, and has reason to send no more of them than it gets answers.
PeerLimits limits_of_requests(std::uint64_t frame, int parts, bool encrypted, base::Duration silence);

/// Not thread-safe.
class PeerAccount {
 public:
  PeerAccount(const PeerLimits& limits, base::Clock::TimePoint now);

  /// What came from the client: nothing if it may be passed on.
  std::optional<Refusal> from_client(std::span<const std::byte> bytes, base::Clock::TimePoint now);

  void from_server(std::span<const std::byte> bytes);

  /// Whether both have said that they know the other.
  bool acquainted() const { return client_ready_ && server_ready_; }

  /// How long what the client sends next has to wait; not more than 0 if it need not.
  base::Duration wait() const;

 private:
  std::optional<Refusal> charge(const ZmtpFrame& frame);
  void earn(base::Clock::TimePoint now);

  PeerLimits limits_;
  ZmtpReader client_;
  ZmtpReader server_;
  bool server_is_foreign_ = false;
  bool client_ready_ = false;
  bool server_ready_ = false;
  base::Clock::TimePoint now_;
  /// May be below 0: then the client waits.
  double tokens_;
  double allowance_;
  int parts_ = 0;
};

}  // namespace vigil::cluster
