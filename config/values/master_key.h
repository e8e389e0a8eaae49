// The key by which what is remembered is encrypted on a disk, as a text.
#pragma once

#include <string_view>

namespace vigil::config {

/// Whether such a key stands where the path of its file is expected, as 64 hexadecimal digits: the text
/// itself, or what is behind the folder that it was taken to be relative to. Such a text belongs into no
/// message.
bool is_master_key_for_path(std::string_view path);

}  // namespace vigil::config
