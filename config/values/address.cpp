#include "config/values/address.h"

#include <charconv>

#include <arpa/inet.h>

namespace vigil::config {

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && rest == text.data() + text.size() && port >= 1 && port <= 65535;
}

std::string endpoint_next_to(const std::string& bind) {
  if (bind.starts_with("ipc://")) return bind + ".replay";
  const std::size_t colon = bind.rfind(':');
  unsigned port = 0;
  if (colon == std::string::npos || !is_port(std::string_view(bind).substr(colon + 1))) return "";
  std::from_chars(bind.data() + colon + 1, bind.data() + bind.size(), port);
  return port == 65535 ? "" : bind.substr(0, colon + 1) + std::to_string(port + 1);
}

bool is_loopback_address(std::string_view listen) {
  const std::string_view host = listen.substr(0, listen.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // The whole of 127.0.0.0/8, but no name that begins so.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

bool is_every_address(std::string_view listen) {
  std::string host(listen.substr(0, listen.rfind(':')));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  in_addr of_four{};
  in6_addr of_sixteen{};
  if (::inet_pton(AF_INET, host.c_str(), &of_four) == 1) return of_four.s_addr == INADDR_ANY;
  return ::inet_pton(AF_INET6, host.c_str(), &of_sixteen) == 1 && IN6_IS_ADDR_UNSPECIFIED(&of_sixteen);
}

}  // namespace vigil::config
