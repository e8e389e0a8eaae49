// `{NAME}` in a setting stands for an environment variable, so that secrets stay out of the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/file/load.h"
#include "config/values/masked_text.h"

namespace vigil::config {

struct Substituted {
  /// With the variables' values; `shown` has "***" in their place.
  MaskedText text;
  /// Names that are not set.
  std::vector<std::string> missing;
};

/// Replaces every `{NAME}`, where NAME has capital letters, digits and underscores. Other braces stay as they
/// are.
Substituted substitute(std::string_view text, const Environment& environment);

/// What a variable of a number has instead of one, for messages: a short word, since of what is longer nobody
/// knows what it is.
std::string in_a_word(const std::string& value);

/// Whether `substitute` would replace something.
bool has_variable(std::string_view text);

}  // namespace vigil::config
