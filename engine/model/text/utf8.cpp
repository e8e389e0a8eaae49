#include "engine/model/text/utf8.h"

#include <cstdint>

#include <unicode/utf8.h>

namespace vigil::model {

std::string replace_invalid_utf8(std::string_view text) {
  constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
  std::string valid;
  valid.reserve(text.size());
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  // ICU's macros count in int32 or size_t alike; a negative character marks a maximal ill-formed part.
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    UChar32 character = 0;
    U8_NEXT(bytes, at, text.size(), character);
    if (character < 0) {
      valid.append(kReplacement);
    } else {
      valid.append(text.substr(begin, at - begin));
    }
  }
  return valid;
}

std::size_t incomplete_utf8_tail(std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
  for (std::size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    const std::size_t begin = text.size() - length;
    if (U8_IS_TRAIL(bytes[begin])) continue;
    const std::size_t wanted = 1U + static_cast<std::size_t>(U8_COUNT_TRAIL_BYTES(bytes[begin]));
    if (wanted <= length) return 0;
    std::size_t at = begin;
    UChar32 character = 0;
    U8_NEXT(bytes, at, text.size(), character);
    // Ill-formed up to the very end: what is there is a proper beginning (E0 80, say, would stop after one
    // byte).
    return at == text.size() ? length : 0;
  }
  return 0;
}

}  // namespace vigil::model
