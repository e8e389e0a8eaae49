#include "media/url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace vigil::media {
namespace {

constexpr std::string_view kMask = "***";

bool is_port(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool names_a_secret(std::string_view key) {
  static constexpr std::array<std::string_view, 9> kSecrets = {"pass", "pwd",  "token", "secret",    "key",
                                                               "auth", "sign", "sig",   "credential"};
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kSecrets.begin(), kSecrets.end(),
                     [&](std::string_view secret) { return lower.find(secret) != std::string::npos; });
}

// The part between "://" and the first '/', '?' or '#' is user:password@host:port. A password may hold an
// unescaped
// '@' or even '/': the last '@' that can belong to it counts.
std::string mask_user_info(const std::string& url) {
  const std::size_t colon = url.find(':');
  if (colon == std::string::npos) return url;
  const std::size_t slash = url.find_first_of("/?#");
  const std::string_view authority = std::string_view(url).substr(0, slash);
  std::size_t at = authority.rfind('@');
  if (at == std::string_view::npos) {
    if (colon > authority.size() || authority[0] == '[' || is_port(authority.substr(colon + 1))) return url;
    at = url.rfind('@');
    if (at == std::string::npos) return url;
  }
  if (colon > at) return url;
  return url.substr(0, colon + 1) + std::string(kMask) + url.substr(at);
}

std::string mask_query(const std::string& url) {
  std::size_t begin = url.find('?');
  if (begin == std::string::npos) return url;
  std::string shown = url.substr(0, begin);
  while (begin < url.size()) {
    const std::size_t end = std::min(url.find_first_of("&#", begin + 1), url.size());
    const std::string parameter = url.substr(begin, end - begin);
    const std::size_t equals = parameter.find('=');
    const bool secret =
        equals != std::string::npos && names_a_secret(std::string_view(parameter).substr(0, equals));
    shown += secret ? parameter.substr(0, equals + 1) + std::string(kMask) : parameter;
    begin = end;
  }
  return shown;
}

}  // namespace

std::string without_credentials(const std::string& text) {
  std::string shown;
  std::size_t done = 0;
  for (std::size_t scheme = text.find("://"); scheme != std::string::npos; scheme = text.find("://", done)) {
    const std::size_t begin = scheme + 3;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n\"'|", begin), text.size());
    shown += text.substr(done, begin - done);
    shown += mask_query(mask_user_info(text.substr(begin, end - begin)));
    done = end;
  }
  return shown + text.substr(done);
}

}  // namespace vigil::media
