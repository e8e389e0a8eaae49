// `{NAME}` in a setting stands for an environment variable, so that secrets stay out of the file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/url_mask.h"
#include "config/load.h"

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

/// Whether `substitute` would replace something.
bool has_variable(std::string_view text);

using base::behind_credentials;
using base::has_credentials;
using base::has_scheme;
using base::mask_credentials;

/// The URL with these put in, percent-encoded; as it is without a username.
MaskedText with_credentials(const MaskedText& url, std::string_view username, std::string_view password);

/// Whether a CURVE key stands where the path of its file is expected: the text itself, or what is behind the
/// folder that it was taken to be relative to. Such a text belongs into no message.
bool is_key_for_path(std::string_view path);

}  // namespace vigil::config
