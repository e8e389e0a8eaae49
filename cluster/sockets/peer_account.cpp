#include "cluster/sockets/peer_account.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace vigil::cluster {
namespace {

// A box of CURVE: the command's name, a nonce, a code that authenticates, and the flags.
constexpr std::uint64_t kCurveOverhead = 8 + 8 + 16 + 1;
// A command of a handshake: INITIATE with a certificate, and an identity of 255 bytes in what it tells.
constexpr std::uint64_t kHandshakeFrame = 1024;
// PING has a name, a time and 16 bytes at most; no answer is as short, even encrypted.
constexpr std::uint64_t kLongestHeartbeat = 5 + 2 + 16 + kCurveOverhead;

std::uint64_t largest_of(const PeerLimits& limits) {
  return std::max(kHandshakeFrame, limits.frame + (limits.encrypted ? kCurveOverhead : 0));
}

}  // namespace

std::string_view name_of(Refusal refusal) {
  switch (refusal) {
    case Refusal::connections:
      return "connections";
    case Refusal::address:
      return "address";
    case Refusal::handshake:
      return "handshake";
    case Refusal::protocol:
      return "protocol";
    case Refusal::frame_size:
      return "frame_size";
    case Refusal::message_parts:
      return "message_parts";
    case Refusal::allowance:
      return "allowance";
    case Refusal::silence:
      return "silence";
    case Refusal::descriptors:
      return "descriptors";
  }
  return "";
}

PeerLimits limits_of_requests(std::uint64_t frame, int parts, bool encrypted, base::Duration silence) {
  PeerLimits limits;
  limits.silence = silence;
  limits.frame = frame;
  limits.parts = parts;
  limits.least_cost = 256;
  limits.allowance = 128 << 10;
  limits.answers_restore = true;
  // So that a client that asks nothing, or waits for an answer, may beat for ever.
  limits.recovery = encrypted ? 256 : 0;
  limits.encrypted = encrypted;
  return limits;
}

PeerAccount::PeerAccount(const PeerLimits& limits, base::Clock::TimePoint now)
    : limits_(limits),
      client_(largest_of(limits)),
      server_(std::numeric_limits<std::uint64_t>::max()),
      now_(now),
      tokens_(limits.burst),
      allowance_(limits.allowance) {}

void PeerAccount::earn(base::Clock::TimePoint now) {
  const double seconds = std::chrono::duration<double>(now - now_).count();
  now_ = now;
  tokens_ = std::min(limits_.burst, tokens_ + seconds * limits_.per_second);
  allowance_ = std::min(limits_.allowance, allowance_ + seconds * limits_.recovery);
}

std::optional<Refusal> PeerAccount::from_client(std::span<const std::byte> bytes,
                                                base::Clock::TimePoint now) {
  earn(now);
  ZmtpFrame frame;
  for (;;) {
    switch (client_.next(bytes, frame)) {
      case ZmtpReader::Result::more:
        return std::nullopt;
      case ZmtpReader::Result::foreign:
        return Refusal::protocol;
      case ZmtpReader::Result::too_large:
        return Refusal::frame_size;
      case ZmtpReader::Result::frame:
        if (const auto refusal = charge(frame)) return refusal;
    }
  }
}

std::optional<Refusal> PeerAccount::charge(const ZmtpFrame& frame) {
  const auto cost = static_cast<double>(std::max(limits_.least_cost, frame.size));
  tokens_ -= cost;
  if (frame.is("READY") || frame.is("INITIATE")) client_ready_ = true;
  // Commands come between the parts of a message, too, and end none.
  if (frame.more) {
    ++parts_;
  } else if (!frame.command) {
    parts_ = 0;
  }
  if (parts_ >= limits_.parts) return Refusal::message_parts;
  const bool heartbeat = frame.is("PING") || frame.is("PONG");
  if (heartbeat && frame.size <= kLongestHeartbeat) return std::nullopt;
  allowance_ -= cost;
  if (allowance_ < 0) return Refusal::allowance;
  return std::nullopt;
}

void PeerAccount::from_server(std::span<const std::byte> bytes) {
  ZmtpFrame frame;
  while (!server_is_foreign_) {
    const ZmtpReader::Result result = server_.next(bytes, frame);
    if (result == ZmtpReader::Result::more) return;
    // What it answers to a stranger need not be understood.
    server_is_foreign_ = result != ZmtpReader::Result::frame;
    if (frame.is("READY")) {
      server_ready_ = true;
    } else if (acquainted() && limits_.answers_restore && frame.size > kLongestHeartbeat) {
      allowance_ = limits_.allowance;
    }
  }
}

base::Duration PeerAccount::wait() const {
  if (tokens_ >= 0) return base::Duration(0);
  return base::Duration(static_cast<base::Duration::rep>(std::ceil(-tokens_ / limits_.per_second * 1000)));
}

}  // namespace vigil::cluster
