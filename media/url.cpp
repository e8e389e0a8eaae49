#include "media/url.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

namespace vigil::media {
namespace {

constexpr std::string_view kMask = "***";

constexpr std::string_view kScheme = "://";

bool names_a_secret(std::string_view key) {
  static constexpr std::array<std::string_view, 9> kSecrets = {"pass", "pwd",  "token", "secret",    "key",
                                                               "auth", "sign", "sig",   "credential"};
  std::string lower(key);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::any_of(kSecrets.begin(), kSecrets.end(),
                     [&](std::string_view secret) { return lower.find(secret) != std::string::npos; });
}

// Between "://" and the first '/', '?' or '#' lies user:password@host:port. A password may hold these
// unescaped,
// '@' too, and begin like a port: the last '@' of all is taken for its end, though that may mask part of a
// path.
std::string mask_user_info(const std::string& url) {
  const std::size_t colon = url.find(':');
  const std::size_t at = url.rfind('@');
  if (colon == std::string::npos || at == std::string::npos || colon > at) return url;
  const bool host_without_user = url[0] == '[' || url.find_first_of("/?#") < colon;
  if (host_without_user) return url;
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

std::string url_without_credentials(const std::string& url) {
  const std::size_t scheme = url.find(kScheme);
  if (scheme == std::string::npos) return url;
  const std::size_t begin = scheme + kScheme.size();
  return url.substr(0, begin) + mask_query(mask_user_info(url.substr(begin)));
}

std::string without_credentials(const std::string& text) {
  std::string shown;
  std::size_t done = 0;
  for (std::size_t scheme = text.find(kScheme); scheme != std::string::npos;
       scheme = text.find(kScheme, done)) {
    const std::size_t begin = scheme + kScheme.size();
    const auto end_from = [&](std::size_t from) {
      return std::min(text.find_first_of(" \t\r\n\"'|", from), text.size());
    };
    std::size_t end = end_from(begin);
    // What follows the delimiter may still be of a password that holds it.
    const std::size_t at = text.rfind('@', text.find(kScheme, begin));
    if (at != std::string::npos && at > end && text.find(':', begin) < end) end = end_from(at);
    shown += text.substr(done, begin - done);
    shown += mask_query(mask_user_info(text.substr(begin, end - begin)));
    done = end;
  }
  return shown + text.substr(done);
}

}  // namespace vigil::media
