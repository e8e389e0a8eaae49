// Where a URL leads, and whether two of them lead to the same server.
#pragma once

#include <optional>
#include <string>

namespace vigil::media {

/// Scheme, host and port of a URL, as FFmpeg takes it apart.
struct Origin {
  /// In lower case.
  std::string scheme;
  std::string host;
  /// The scheme's own where the URL has none; -1 if that is not known.
  int port = -1;
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// Nothing for a text without "SCHEME://", or without a host behind it. What is encrypted by a playlist's
/// means ("crypto+http://...") is where it comes from.
std::optional<Origin> origin_of(const std::string& url);

/// Whether both have an origin, and the same.
bool same_origin(const std::string& a, const std::string& b);

/// Where a redirect leads that `location` names in the answer to `url`; nothing if it may not be followed: it
/// stays on the server (or goes from its http to its https, both at their usual ports), and takes the URL's
/// user along.
std::optional<std::string> redirected(const std::string& url, const std::string& location);

/// The URL with another scheme, and with `server` ("HOST:PORT") in the place of its host and port.
std::string with_server(const std::string& url, const std::string& scheme, const std::string& server);

}  // namespace vigil::media
