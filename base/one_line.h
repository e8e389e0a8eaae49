// Text of strangers, fit for a line of a log or a terminal.
#pragma once

#include <string>
#include <string_view>

namespace vigil::base {

/// The text with '?' for each control character, and for each byte that is no part of a character in UTF-8:
/// it ends no line, moves no cursor and sets no colour.
std::string one_line(std::string_view text);

}  // namespace vigil::base
