// URLs, fit to be shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace vigil::base {

/// Whether a text is a URL with a scheme, rather than the path of a file.
bool has_scheme(std::string_view text);

/// The URL with "***" for user and password, for what its query says beyond which stream is meant, and for
/// what looks like a token in its path or fragment: a part that is long and no words, one that names a value
/// (`token=...`), or one that follows `/token/`, `/key/` and the like. Hides too much rather than too little
/// where a URL has an unescaped '@', '/', '?' or '#' in it. Of files and devices, only the query and what
/// precedes an '@' of a scheme's authority are secret.
std::string mask_credentials(std::string_view url);

/// The same of a source, which may be the name of a file: that is shown as it is.
std::string mask_source(std::string_view source);

/// Whether the URL names a user, as far as `mask_credentials` can tell.
bool has_credentials(std::string_view url);

/// What follows the scheme, user and password: where the host stands.
std::string_view behind_credentials(std::string_view url);

/// Behind "://"; 0 if there is none.
std::size_t authority_begin(std::string_view url);

/// A text of others with every URL in it masked. Where its end cannot be told from a password, up to the last
/// '@' of what may be one URL.
std::string mask_urls(std::string_view text);

/// A text without what is secret in a URL: the parts of `url` that `shown`, which is the same URL as it may
/// be seen, does not have. For what a server says that was told the URL.
std::string mask_parts(std::string text, std::string_view url, std::string_view shown);

}  // namespace vigil::base
