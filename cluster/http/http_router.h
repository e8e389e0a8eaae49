// Which route a request goes, and what is said of one that goes none; without sockets.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/http/http.h"

namespace vigil::cluster {

struct HttpTarget {
  std::string path;
  std::string query;
};
/// Of a request line: "/path?query", or with a scheme and a host in front, which mean nothing here. Nothing
/// if it is no such.
std::optional<HttpTarget> parse_target(std::string_view target);

/// Thread-safe.
class HttpRouter {
 public:
  explicit HttpRouter(std::vector<HttpRoute> routes) : routes_(std::move(routes)) {}

  struct Match {
    /// Index of the route; nothing: `status` says why.
    std::optional<std::size_t> route;
    int status = 404;
    /// The methods that the path has, with status 405.
    std::string allow;
  };
  Match find(std::string_view method, std::string_view path) const;

  const HttpRoute& route(std::size_t index) const { return routes_.at(index); }
  std::size_t size() const { return routes_.size(); }

 private:
  std::vector<HttpRoute> routes_;
};

}  // namespace vigil::cluster
