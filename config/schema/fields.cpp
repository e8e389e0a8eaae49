#include "config/schema/fields.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include <arpa/inet.h>

#include "base/devices.h"
#include "config/values/address.h"

namespace vigil::config {
namespace {

/// In numbers, without brackets; of one network alone ("fe80::1%eth0"), too.
bool is_v6(std::string_view host) {
  const std::string address(host.substr(0, host.find('%')));
  in6_addr bytes{};
  return ::inet_pton(AF_INET6, address.c_str(), &bytes) == 1;
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
         });
}

bool is_tenant(std::string_view text) {
  return text == "*" || is_name(text);
}

bool is_name_or_nothing(std::string_view text) {
  return text.empty() || is_name(text);
}

bool is_step(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  return !text.empty() && text.size() <= kLongest && text != "full" && text != "refused" &&
         text.front() != ' ' && text.back() != ' ' && std::all_of(text.begin(), text.end(), [](char c) {
           return is_name(std::string("a") + c) || c == ' ';
         });
}

bool is_title(std::string_view text) {
  constexpr std::size_t kLongest = 200;
  if (text.size() > kLongest || (!text.empty() && !is_password(text))) return false;
  for (std::size_t at = 0; (at = text.find_first_of("{}", at)) != std::string_view::npos;) {
    const std::string_view rest = text.substr(at);
    const std::string_view known = rest.starts_with("{camera}") ? "{camera}" : "{rule}";
    if (!rest.starts_with(known)) return false;
    at += known.size();
  }
  return text.empty() || text.find_first_not_of(' ') != std::string_view::npos;
}

bool is_prompt(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return false;
  // What models write special tokens like: in a question it would end the user's turn, or count as a picture.
  const std::size_t mark = text.find("<|");
  return mark == std::string_view::npos || text.find("|>", mark + 2) == std::string_view::npos;
}

bool is_username(std::string_view text) {
  return !text.empty() && text.find(':') == std::string_view::npos && is_password(text);
}

bool is_username_or_nothing(std::string_view text) {
  return text.empty() || is_username(text);
}

bool is_password(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return std::iscntrl(static_cast<unsigned char>(c)) != 0;
  });
}

bool is_local_endpoint(std::string_view text) {
  if (text.starts_with("ipc:///")) return text.size() > 7;
  for (const std::string_view host : {"tcp://127.0.0.1:", "tcp://[::1]:"}) {
    if (text.starts_with(host)) return is_port(text.substr(host.size()));
  }
  return false;
}

bool is_endpoint(std::string_view text) {
  if (text.starts_with("ipc:///")) return text.size() > 7;
  const std::size_t colon = text.rfind(':');
  return text.starts_with("tcp://") && colon > 6 && colon != std::string_view::npos &&
         is_port(text.substr(colon + 1));
}

bool is_endpoint_or_nothing(std::string_view text) {
  return text.empty() || is_endpoint(text);
}

bool is_listen_address(std::string_view text) {
  if (text.empty()) return true;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !is_port(text.substr(colon + 1))) return false;
  const std::string_view host = text.substr(0, colon);
  const bool in_brackets = host.starts_with('[') && host.ends_with(']');
  // Of one without brackets, nobody knows where it ends.
  if (in_brackets ? !is_v6(host.substr(1, host.size() - 2)) : host.find_first_of("[]:") != host.npos)
    return false;
  // It is no URL.
  return text.find_first_of("/ \t\r\n") == std::string_view::npos;
}

bool is_node_address(std::string_view text) {
  return !text.empty() && is_listen_address(text);
}

bool is_host_or_nothing(std::string_view text) {
  return text.empty() || is_v6(text) || is_node_address(std::string(text) + ":1");
}

bool is_device(std::string_view text) {
  return base::parse_devices(text).has_value();
}

bool is_decode_device(std::string_view text) {
  if (text.empty()) return true;
  const auto devices = base::parse_devices(text);
  return devices &&
         std::none_of(devices->begin(), devices->end(), [](const base::Gpus& gpus) { return gpus.empty(); });
}

}  // namespace vigil::config
