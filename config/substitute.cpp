#include "config/substitute.h"

#include <algorithm>
#include <cctype>

namespace vigil::config {
namespace {

bool is_variable(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
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
  const std::size_t begin = url.find("://");
  if (begin == std::string_view::npos) return std::string(url);
  const std::size_t authority = begin + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", authority), url.size());
  const std::size_t at = url.substr(0, end).rfind('@');
  if (at == std::string_view::npos || at < authority) return std::string(url);
  return std::string(url.substr(0, authority)) + "***" + std::string(url.substr(at));
}

}  // namespace vigil::config
