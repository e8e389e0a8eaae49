#include "config/substitute.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

namespace vigil::config {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

struct Authority {
  /// Behind "://"; the URL's end if it has none.
  std::size_t begin = 0;
  /// Where the '@' is, if there is one.
  std::optional<std::size_t> user_end;
};

Authority authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {url.size(), std::nullopt};
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < begin) return {begin, std::nullopt};
  return {begin, at};
}

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

Substituted substitute(std::string_view text, const Environment& environment) {
  Substituted result;
  while (!text.empty()) {
    const std::size_t open = text.find('{');
    const std::size_t close = open == std::string_view::npos ? open : text.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = text.substr(open + 1, close - open - 1);
    if (!is_variable(name)) {
      result.text.value += text.substr(0, open + 1);
      result.text.shown += text.substr(0, open + 1);
      text.remove_prefix(open + 1);
      continue;
    }
    result.text.value += text.substr(0, open);
    result.text.shown += text.substr(0, open);
    if (const auto value = environment(std::string(name))) {
      result.text.value += *value;
    } else {
      result.missing.emplace_back(name);
    }
    result.text.shown += "***";
    text.remove_prefix(close + 1);
  }
  result.text.value += text;
  result.text.shown += text;
  return result;
}

bool has_scheme(std::string_view text) {
  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos || colon == 0) return false;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
  });
}

std::string mask_credentials(std::string_view url) {
  const Authority authority = authority_of(url);
  if (!authority.user_end) return std::string(url);
  return std::string(url.substr(0, authority.begin)) + "***" + std::string(url.substr(*authority.user_end));
}

bool has_credentials(std::string_view url) {
  return authority_of(url).user_end.has_value();
}

MaskedText with_credentials(const MaskedText& url, std::string_view username, std::string_view password) {
  if (username.empty()) return url;
  std::string user = percent_encoded(username);
  if (!password.empty()) user += ':' + percent_encoded(password);
  MaskedText result = url;
  result.value.insert(authority_of(url.value).begin, user + '@');
  result.shown.insert(authority_of(url.shown).begin, "***@");
  return result;
}

}  // namespace vigil::config
