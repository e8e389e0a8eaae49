#include "config/substitute.h"

#include <algorithm>
#include <cctype>
#include <cstring>

namespace vigil::config {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
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

bool has_variable(std::string_view text) {
  const Substituted result = substitute(text, [](const std::string&) { return std::nullopt; });
  return !result.missing.empty();
}

MaskedText with_credentials(const MaskedText& url, std::string_view username, std::string_view password) {
  if (username.empty()) return url;
  std::string user = percent_encoded(username);
  if (!password.empty()) user += ':' + percent_encoded(password);
  MaskedText result = url;
  result.value.insert(base::authority_begin(url.value), user + '@');
  result.shown.insert(base::authority_begin(url.shown), "***@");
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
