// Names of sources, fit to be shown.
#pragma once

#include <string>

namespace vigil::media {

/// `text` with the password of every URL in it replaced: rtsp://user:***@host. Values of query parameters
/// whose names speak of a secret (password, token, key, …) are replaced too. Anything else stays as it is.
std::string without_credentials(const std::string& text);

}  // namespace vigil::media
