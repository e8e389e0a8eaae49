// HTTP: a small server for metrics, health and state, and the client that reads them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace vigil::cluster {

/// An address that cannot be listened on or reached: one line with the address and the reason.
class HttpError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers GET requests on threads of its own until it is destroyed.
class HttpServer {
 public:
  /// Called on any of the server's threads, several at once.
  using Handler = std::function<HttpResponse()>;

  /// `listen`: HOST:PORT, port 0 takes any free one; `routes`: by path. Throws HttpError, as when the port is
  /// in use.
  HttpServer(const std::string& listen, const std::map<std::string, Handler>& routes);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// Where it really listens.
  int port() const;

 private:
  struct Running;
  std::unique_ptr<Running> running_;
};

/// The URL of an absolute path on a server, whether or not the server's own address ends with slashes.
std::string url_of(std::string server, std::string_view path);

/// GET of an http:// URL. Throws HttpError if there is no answer within `timeout`; an answer of any status is
/// returned.
HttpResponse http_get(const std::string& url, std::chrono::milliseconds timeout);

}  // namespace vigil::cluster
