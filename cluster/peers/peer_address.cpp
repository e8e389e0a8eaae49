#include "cluster/peers/peer_address.h"

#include <charconv>
#include <utility>

namespace vigil::cluster {

std::optional<PeerAddress> parse_peer(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [last, wrong] = std::from_chars(text.data() + colon + 1, end, port);
  if (wrong != std::errc() || last != end) return std::nullopt;
  std::string host(text.substr(0, colon));
  const bool in_brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (in_brackets) host = host.substr(1, host.size() - 2);
  // Of an address of IPv6 without brackets, nobody knows where it ends.
  if (host.find_first_of(in_brackets ? "[]/@ " : "[]/@ :") != std::string::npos) return std::nullopt;
  return PeerAddress{std::move(host), port};
}

std::string text_of(const PeerAddress& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return (is_v6 ? '[' + address.host + ']' : address.host) + ':' + std::to_string(address.port);
}

PeerAddress told_address(const PeerAddress& listen, std::string_view advertise) {
  if (advertise.empty()) return listen;
  return parse_peer(std::string(advertise) + ':' + std::to_string(listen.port))
      .value_or(PeerAddress{std::string(advertise), listen.port});
}

}  // namespace vigil::cluster
