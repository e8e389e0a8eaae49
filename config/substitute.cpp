#include "config/substitute.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <regex>

namespace vigil::config {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// Whether this begins with an IP address and maybe a port, where a host ends: no user is called so.
bool begins_with_address(std::string_view text) {
  static const std::regex address(R"((\d{1,3}(\.\d{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?([/?#]|$))");
  return std::regex_search(text.begin(), text.end(), address, std::regex_constants::match_continuous);
}

struct Authority {
  /// Behind "://"; 0 if there is none.
  std::size_t begin = 0;
  /// Where the '@' is, if there is one.
  std::optional<std::size_t> user_end;
};

/// What a standard calls the authority ends at the first of "/?#", but passwords are pasted with these in
/// them: the last '@' counts, wherever it is, unless an address tells where the host is. A host's name in
/// front of an '@' in a path or query is taken for a user.
Authority authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t begin = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::string_view text = url.substr(begin);
  // A path, as of a file.
  if (text.starts_with('/') || begins_with_address(text)) return {begin, std::nullopt};
  const std::size_t last = text.rfind('@');
  if (last == std::string_view::npos) return {begin, std::nullopt};
  for (std::size_t at = last; at != std::string_view::npos;
       at = at == 0 ? text.npos : text.rfind('@', at - 1)) {
    if (begins_with_address(text.substr(at + 1))) return {begin, begin + at};
  }
  return {begin, begin + last};
}

/// Whether a parameter of a query says which of a camera's streams is meant, and nothing else.
bool tells_the_stream(std::string_view parameter) {
  static const std::regex harmless(
      "(cam|camera|channel|codec|fps|profile|resolution|stream|streamtype|subtype|unicast|videocodec)"
      "=[A-Za-z0-9._-]{0,16}",
      std::regex::icase);
  return std::regex_match(parameter.begin(), parameter.end(), harmless);
}

/// A query with "***" for all that may be a secret. Names are masked like values: what follows an '&' may
/// still be the password.
std::string mask_query(std::string_view query) {
  std::string shown;
  bool masked = false;
  while (!query.empty()) {
    const std::size_t end = std::min(query.find('&'), query.size());
    const std::string_view parameter = query.substr(0, end);
    const bool harmless = tells_the_stream(parameter);
    if (harmless || !masked) {
      if (!shown.empty()) shown += '&';
      shown += harmless ? parameter : "***";
    }
    masked = !harmless;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return shown;
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
  std::string shown(url.substr(0, authority.begin));
  if (authority.user_end) shown += "***";
  const std::string_view rest = url.substr(authority.user_end.value_or(authority.begin));
  const std::size_t query = std::min(rest.find('?'), rest.size());
  shown += rest.substr(0, query);
  if (query < rest.size()) shown += '?' + mask_query(rest.substr(query + 1));
  return shown;
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

bool is_key_for_path(std::string_view path) {
  constexpr std::string_view kBlanks = " \t\r\n";
  constexpr std::size_t kKeyCharacters = 40;
  const std::size_t last = path.find_last_not_of(kBlanks);
  if (last == std::string_view::npos) return false;
  path = path.substr(0, last + 1);
  path.remove_prefix(path.find_first_not_of(kBlanks));
  if (path.size() < kKeyCharacters) return false;
  const std::string_view tail = path.substr(path.size() - kKeyCharacters);
  if (!is_curve_key(tail) || (tail.size() < path.size() && path[path.size() - kKeyCharacters - 1] != '/')) {
    return false;
  }
  // A path may have as many characters and all of Z85. Not one key in ten thousand is without these.
  return tail.find_first_of(":+=^!*?&<>()[]{}@%$#") != std::string_view::npos ||
         tail.find_first_of("/.") == std::string_view::npos;
}

}  // namespace vigil::config
