#include "config/settings.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

#include "base/devices.h"
#include "config/fields.h"
#include "config/substitute.h"

namespace vigil::config {
namespace {

bool is_port(std::string_view text) {
  unsigned port = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && rest == text.data() + text.size() && port >= 1 && port <= 65535;
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= 128 && std::isalnum(static_cast<unsigned char>(text.front())) != 0 &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
         });
}

bool is_name_or_nothing(std::string_view text) {
  return text.empty() || is_name(text);
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

bool is_replay_endpoint(std::string_view text) {
  return text.empty() || is_endpoint(text);
}

bool is_curve_key(std::string_view text) {
  constexpr std::string_view kPunctuation = ".-:+=^!/*?&<>()[]{}@%$#";
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  kPunctuation.find(c) != kPunctuation.npos;
         });
}

std::string endpoint_next_to(const std::string& bind) {
  if (bind.starts_with("ipc://")) return bind + ".replay";
  const std::size_t colon = bind.rfind(':');
  unsigned port = 0;
  if (colon == std::string::npos || !is_port(std::string_view(bind).substr(colon + 1))) return "";
  std::from_chars(bind.data() + colon + 1, bind.data() + bind.size(), port);
  return port == 65535 ? "" : bind.substr(0, colon + 1) + std::to_string(port + 1);
}

std::string AlertSettings::replay_endpoint() const {
  return replay.empty() ? endpoint_next_to(bind) : replay;
}

bool is_listen_address(std::string_view text) {
  if (text.empty()) return true;
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || !is_port(text.substr(colon + 1))) return false;
  // It is no URL.
  return text.find_first_of("/ \t\r\n") == std::string_view::npos;
}

bool is_loopback_address(std::string_view listen) {
  const std::string_view host = listen.substr(0, listen.rfind(':'));
  if (host == "localhost" || host == "[::1]") return true;
  // The whole of 127.0.0.0/8, but no name that begins so.
  return host.starts_with("127.") && host.find_first_not_of("0123456789.") == std::string_view::npos;
}

std::string CameraSettings::tenant() const {
  const auto label = labels.find("tenant");
  return label == labels.end() ? "default" : label->second;
}

MaskedText CameraSettings::address(Role role) const {
  const auto serves = [role](const InputSettings& input) {
    return std::find(input.roles.begin(), input.roles.end(), role) != input.roles.end();
  };
  auto input = std::find_if(inputs.begin(), inputs.end(), serves);
  if (input == inputs.end()) {
    if (role != Role::detect) return address(Role::detect);
    input = inputs.begin();
  }
  return with_credentials(input->url, username.value, password.value);
}

bool CameraSettings::has_labels(const std::map<std::string, std::string>& wanted) const {
  return std::all_of(wanted.begin(), wanted.end(), [this](const auto& each) {
    const auto label = labels.find(each.first);
    return label != labels.end() && label->second == each.second;
  });
}

std::optional<base::Clock::WallTime> CameraSettings::snoozed_until(const RuleSettings& rule) const {
  return std::max(snooze_until, rule.snooze_until);
}

bool is_file(std::string_view url) {
  if (has_scheme(url)) return url.starts_with("file://");
  // What is kept in memory is a file like any other.
  return !url.starts_with("/dev/") || url.starts_with("/dev/shm/");
}

bool same_stream(const CameraSettings& a, const CameraSettings& b) {
  StreamSettings stream = a.stream;
  stream.window.length = b.stream.window.length;
  return stream == b.stream && a.inputs == b.inputs && a.username == b.username && a.password == b.password;
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
