// What a store's folder is: its layout, and by which master key it is encrypted, if it is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/kv/history/cipher.h"

namespace vigil::history {

/// Two lines: the layout's number, and "none" or a random key that the master key has wrapped, by which it is
/// known again.
std::string new_format(const std::optional<SecretKey>& master);

/// Whether it is the text of a format of any layout, unharmed.
bool is_format(std::string_view text);

/// The same in the newest layout, of a format that `check_format` takes.
std::string of_newest_layout(const std::string& text);

/// Throws HistoryError, which begins with `name`, if the folder has another layout, or another master key,
/// or one where none is given, or none.
void check_format(std::string_view text, const std::optional<SecretKey>& master, const std::string& name);

}  // namespace vigil::history
