#include "config/values/masked_text.h"

#include <cctype>
#include <cstring>

namespace vigil::config {
namespace {

/// All but the unreserved characters of RFC 3986.
std::string percent_encoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool unreserved = byte < 128 && (std::isalnum(byte) != 0 || std::strchr("-._~", c) != nullptr);
    if (unreserved && c != '\0') {
      result += c;
    } else {
      result += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
    }
  }
  return result;
}

}  // namespace

MaskedText with_credentials(const MaskedText& url, std::string_view username, std::string_view password) {
  if (username.empty()) return url;
  std::string user = percent_encoded(username);
  if (!password.empty()) user += ':' + percent_encoded(password);
  MaskedText result = url;
  result.value.insert(base::authority_begin(url.value), user + '@');
  result.shown.insert(base::authority_begin(url.shown), "***@");
  return result;
}

}  // namespace vigil::config
