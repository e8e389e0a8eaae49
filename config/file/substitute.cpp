#include "config/file/substitute.h"

#include <algorithm>

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

std::string in_a_word(const std::string& value) {
  constexpr std::size_t kLongest = 20;
  if (value.empty()) return "empty";
  const bool is_word = value.size() <= kLongest &&
                       std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return is_word ? '`' + value + '`' : "something else";
}

bool has_variable(std::string_view text) {
  const Substituted result = substitute(text, [](const std::string&) { return std::nullopt; });
  return !result.missing.empty();
}

}  // namespace vigil::config
