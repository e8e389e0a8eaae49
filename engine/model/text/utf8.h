// UTF-8 of foreign origin.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vigil::model {

/// Replaces every maximal ill-formed part by U+FFFD, as Python's `errors="replace"` and Rust's
/// `from_utf8_lossy` do.
std::string replace_invalid_utf8(std::string_view text);

/// Bytes at the end that begin a character without completing it and that more bytes could complete: 0 to 3.
std::size_t incomplete_utf8_tail(std::string_view text);

}  // namespace vigil::model
