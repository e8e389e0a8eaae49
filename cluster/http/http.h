// HTTP: what is asked and answered, and the server of it.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/duration.h"

namespace vigil::cluster {

/// An address that cannot be listened on or reached: one line with the address and the reason.
class HttpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpRequest {
  /// As it was sent: "GET", "HEAD", …
  std::string method;
  /// Without the query, not decoded.
  std::string path;
  /// What stands behind the first '?', not decoded.
  std::string query;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The first header of this name, in any case of letters; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Who answers what.
struct HttpRoute {
  /// "GET" answers HEAD as well.
  std::string method = "GET";
  /// The whole path; one that ends with '/' has all that lies behind it, too.
  std::string path;
  std::function<HttpResponse(const HttpRequest&)> handler;
  /// Called on the thread that serves all connections, so it must neither compute nor wait; other handlers
  /// are called one after the other on another thread.
  bool quick = false;
  /// Waits for others, seconds it may be: called beside those that are not slow, on one of four threads for
  /// such.
  bool slow = false;
  /// Whoever asks within this time after an answer was made is given the same, whatever the query or the
  /// headers, and those who ask while it is being made wait for it. 0: each request is answered by itself.
  base::Duration shared_for{0};
  /// Bytes of a request's body at most; more is refused with 413.
  std::size_t max_body = 0;
};

/// What a server grants its clients. Beyond `connections`, the one that has been silent for the longest time
/// is closed in favour of a new one.
struct HttpLimits {
  /// Request line and headers, in bytes; more is refused with 431.
  std::uint32_t header = 8192;
  /// From a request's first byte to its last, and from a connection's beginning to its first byte.
  std::chrono::milliseconds request{5000};
  /// Between two requests.
  std::chrono::milliseconds idle{10000};
  std::chrono::milliseconds handshake{5000};
  /// From an answer's first byte to its last.
  std::chrono::milliseconds write{30000};
  std::size_t connections = 256;
  /// Of one address (of IPv6, of one /64); this machine's own are not counted so.
  std::size_t per_address = 64;
  /// Of `connections`, those that only this machine's own addresses may have.
  std::size_t reserve = 8;
};

/// A server's certificate, with what leads to its issuer behind it, and its private key; both PEM.
struct TlsFiles {
  std::filesystem::path cert_file;
  std::filesystem::path key_file;
};

/// Answers HTTP/1.0 and 1.1 on a thread of its own until it is destroyed. No connection holds up another,
/// however slow it is, and what they can make the server keep is bounded (HttpLimits). Ranges are not served.
class HttpServer {
 public:
  struct Options {
    /// HOST:PORT; port 0 takes any free one, the host of IPv6 is in brackets.
    std::string listen;
    std::vector<HttpRoute> routes;
    HttpLimits limits = {};
    /// If set, nothing but TLS (1.2 or later) is spoken. Files that change serve connections from then on.
    std::optional<TlsFiles> tls = {};
    /// What an operator should know, a line each; called on any of the server's threads.
    std::function<void(const std::string&)> log = {};
    /// The machine's, unless another is given. Has to outlive the server.
    const base::Clock* clock = nullptr;
  };

  /// Throws HttpError, as when the port is in use or the key file is readable by everybody.
  explicit HttpServer(Options options);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Where it really listens.
  int port() const;

 private:
  class Running;
  std::unique_ptr<Running> running_;
};

}  // namespace vigil::cluster
