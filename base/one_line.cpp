#include "base/one_line.h"

#include <cstddef>

#include "base/utf8.h"

namespace vigil::base {

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = utf8_character(text, at);
    const auto byte = [&](std::size_t i) {
      return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
    };
    const unsigned first = byte(at);
    // U+0080 to U+009F are control characters as well.
    const bool control = first < 0x20 || first == 0x7f || (first == 0xc2 && byte(at + 1) < 0xa0);
    if (size == 0 || control) {
      line += '?';
    } else {
      line += text.substr(at, size);
    }
    at += size == 0 ? 1 : size;
  }
  return line;
}

}  // namespace vigil::base
