// Where a node is reached.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vigil::cluster {

/// HOST:PORT, the host a name or an address, that of IPv6 in brackets.
struct PeerAddress {
  std::string host;
  std::uint16_t port = 0;
  friend bool operator==(const PeerAddress&, const PeerAddress&) = default;
};

/// Nothing if the text is none.
std::optional<PeerAddress> parse_peer(std::string_view text);
std::string text_of(const PeerAddress& address);

/// Where others are told to reach what listens there: under this name or address, that of IPv6 in brackets;
/// empty: where it listens.
PeerAddress told_address(const PeerAddress& listen, std::string_view advertise);

}  // namespace vigil::cluster
