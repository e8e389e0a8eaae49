#include "config/values/curve_key.h"

#include <algorithm>
#include <cctype>

namespace vigil::config {

bool is_curve_key(std::string_view text) {
  constexpr std::string_view kPunctuation = ".-:+=^!/*?&<>()[]{}@%$#";
  return text.size() == 40 && std::all_of(text.begin(), text.end(), [&](char c) {
           return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                  kPunctuation.find(c) != kPunctuation.npos;
         });
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
