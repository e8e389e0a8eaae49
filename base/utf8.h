// Where a text's characters begin and end, and where it is none.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace vigil::base {

/// Bytes of the character of UTF-8 that begins at `at`; 0 if none does (RFC 3629: no surrogates, nothing
/// longer than need be, nothing above U+10FFFF).
std::size_t utf8_character(std::string_view text, std::size_t at);

/// The first byte that is no part of a character of UTF-8, or nothing.
std::optional<std::size_t> first_not_utf8(std::string_view text);

}  // namespace vigil::base
