// Keys of CURVE, ZeroMQ's encryption, as texts.
#pragma once

#include <string_view>

namespace vigil::config {

/// Whether a text is a CURVE key in Z85: 40 characters of its alphabet.
bool is_curve_key(std::string_view text);

/// Whether a CURVE key stands where the path of its file is expected: the text itself, or what is behind the
/// folder that it was taken to be relative to. Such a text belongs into no message.
bool is_key_for_path(std::string_view path);

}  // namespace vigil::config
