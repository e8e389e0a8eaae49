#include "cluster/sockets/tcp_address.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <memory>
#include <system_error>

#include <ifaddrs.h>
#include <netinet/in.h>

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::system_error no_address(int error) {
  return {error, std::generic_category()};
}

tcp::endpoint address_of_interface(const std::string& name, std::uint16_t port) {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) throw no_address(errno);
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(all, &::freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET || name != each->ifa_name) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    return {asio::ip::address_v4(ntohl(address->sin_addr.s_addr)), port};
  }
  throw no_address(ENODEV);
}

}  // namespace

tcp::endpoint parse_tcp(const std::string& endpoint) {
  const std::string place = endpoint.substr(endpoint.find("//") + 2);
  const std::size_t colon = place.rfind(':');
  if (colon == std::string::npos || colon == 0) throw no_address(EINVAL);
  std::uint16_t port = 0;
  const char* end = place.data() + place.size();
  const auto [last, wrong] = std::from_chars(place.data() + colon + 1, end, port);
  const bool any = place.substr(colon + 1) == "*";
  if (!any && (wrong != std::errc() || last != end)) throw no_address(EINVAL);
  std::string host = place.substr(0, colon);
  if (host == "*") return {asio::ip::address_v4::any(), port};
  if (host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  boost::system::error_code none;
  const auto address = asio::ip::make_address(host, none);
  return none ? address_of_interface(host, port) : tcp::endpoint(address, port);
}

std::string tcp_text(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return "tcp://" + (endpoint.address().is_v6() ? '[' + host + ']' : host) + ':' +
         std::to_string(endpoint.port());
}

std::string network_of(const asio::ip::address& address) {
  if (address.is_v4()) {
    const auto bytes = address.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto bytes = address.to_v6().to_bytes();
  if (address.to_v6().is_v4_mapped()) return {bytes.begin() + 12, bytes.end()};
  return {bytes.begin(), bytes.begin() + 8};
}

}  // namespace vigil::cluster
