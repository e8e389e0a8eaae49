// The server that a URL names, as FFmpeg would find it. Private to media/.
#pragma once

#include <optional>
#include <string>

namespace vigil::media {

struct Server {
  std::string host;
  /// A number.
  std::string port;
  /// What makes it say something; empty if nothing but a TLS handshake or the request itself would.
  std::string greeting;
};

/// The server of a source that is reached by one TCP connection; nothing of any other.
std::optional<Server> server_of(const std::string& url);

}  // namespace vigil::media
