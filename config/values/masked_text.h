// Texts that may hold secrets, and URLs among them.
#pragma once

#include <string>
#include <string_view>

#include "base/url_mask.h"

namespace vigil::config {

/// A text that may hold secrets: `shown` has them masked, and is what logs and messages may contain.
struct MaskedText {
  std::string value;
  std::string shown;
  friend bool operator==(const MaskedText&, const MaskedText&) = default;
};

using base::behind_credentials;
using base::has_credentials;
using base::has_scheme;
using base::mask_credentials;

/// The URL with these put in, percent-encoded; as it is without a username.
MaskedText with_credentials(const MaskedText& url, std::string_view username, std::string_view password);

}  // namespace vigil::config
