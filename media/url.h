// Names of sources, fit to be shown.
#pragma once

#include <string>

namespace vigil::media {

/// `text` with the password of every URL in it replaced: rtsp://user:***@host. Values of query parameters
/// whose names speak of a secret (password, token, key, …) are replaced too. Anything else stays as it is,
/// but where it cannot be told from a password: up to the last '@' of what may be one URL.
std::string without_credentials(const std::string& text);

/// The same of a text that is one URL, or a file's name, and nothing else: its secrets may hold what ends a
/// URL in a text (blanks, quotes).
std::string url_without_credentials(const std::string& url);

}  // namespace vigil::media
