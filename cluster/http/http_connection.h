// One client of the HTTP server: reads its requests one after the other, and writes what is answered.
#pragma once

#include <functional>
#include <memory>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "cluster/http/connection_book.h"
#include "cluster/http/http.h"
#include "cluster/http/http_router.h"

namespace vigil::cluster {

using HttpAnswer = std::shared_ptr<const HttpResponse>;

/// What a connection needs of its server, which outlives it. All on the server's thread.
class HttpHost {
 public:
  virtual ~HttpHost() = default;

  virtual const HttpLimits& limits() const = 0;
  virtual const HttpRouter& router() const = 0;
  /// Calls `done` once, at once or later.
  virtual void answer(std::size_t route, HttpRequest request, std::function<void(HttpAnswer)> done) = 0;
  virtual void touched(ConnectionBook::Id id) = 0;
  virtual void left(ConnectionBook::Id id) = 0;
};

/// Lives as long as something of it is under way.
class HttpConnection {
 public:
  virtual ~HttpConnection() = default;
  /// Once.
  virtual void start() = 0;
  /// Closes it at once, whatever is under way.
  virtual void drop() = 0;
};

std::shared_ptr<HttpConnection> make_connection(boost::asio::ip::tcp::socket socket, HttpHost& host,
                                                ConnectionBook::Id id);
std::shared_ptr<HttpConnection> make_connection(boost::asio::ip::tcp::socket socket,
                                                boost::asio::ssl::context& tls, HttpHost& host,
                                                ConnectionBook::Id id);

}  // namespace vigil::cluster
