#include "cluster/http.h"

#include <charconv>
#include <cstddef>
#include <exception>
#include <thread>

#include <httplib.h>

namespace vigil::cluster {
namespace {

// Whoever asks is a scraper, a probe or a person: few at a time, and none may hold a thread for long.
constexpr std::size_t kThreads = 4;
constexpr auto kPatience = std::chrono::seconds(5);

struct Address {
  std::string host;
  int port = 0;
};

/// HOST:PORT, the host of IPv6 in brackets.
Address parse(const std::string& listen) {
  const std::size_t colon = listen.rfind(':');
  Address address;
  if (colon == std::string::npos) throw HttpError("cannot listen on " + listen + ": not HOST:PORT");
  address.host = listen.substr(0, colon);
  if (address.host.size() > 2 && address.host.front() == '[' && address.host.back() == ']')
    address.host = address.host.substr(1, address.host.size() - 2);
  const char* begin = listen.data() + colon + 1;
  const char* end = listen.data() + listen.size();
  const auto [last, error] = std::from_chars(begin, end, address.port);
  if (error != std::errc() || last != end || address.port < 0 || address.port > 65535 || address.host.empty())
    throw HttpError("cannot listen on " + listen + ": not HOST:PORT");
  return address;
}

}  // namespace

struct HttpServer::Running {
  httplib::Server server;
  int port = 0;
  std::thread thread;
};

HttpServer::HttpServer(const std::string& listen, const std::map<std::string, Handler>& routes)
    : running_(std::make_unique<Running>()) {
  const Address address = parse(listen);
  httplib::Server& server = running_->server;
  // The server deletes it.
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // The library's own choice lets two processes listen on one port, each unseen by the other.
  server.set_socket_options([](socket_t socket) {
    const int yes = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  });
  server.set_read_timeout(kPatience);
  server.set_write_timeout(kPatience);
  server.set_keep_alive_timeout(1);
  for (const auto& [path, handler] : routes) {
    server.Get(path, [handler = handler](const httplib::Request&, httplib::Response& response) {
      try {
        const HttpResponse answer = handler();
        response.status = answer.status;
        response.set_content(answer.body, answer.content_type);
      } catch (const std::exception& error) {
        response.status = 500;
        response.set_content(std::string(error.what()) + '\n', "text/plain; charset=utf-8");
      }
    });
  }
  if (address.port == 0) {
    running_->port = server.bind_to_any_port(address.host);
  } else if (server.bind_to_port(address.host, address.port)) {
    running_->port = address.port;
  }
  if (running_->port <= 0)
    throw HttpError("cannot listen on " + listen + ": the address is in use or not this machine's");
  running_->thread = std::thread([this] { running_->server.listen_after_bind(); });
  // `stop` is lost on a server that does not run yet.
  while (!server.is_running()) std::this_thread::yield();
}

HttpServer::~HttpServer() {
  running_->server.stop();
  if (running_->thread.joinable()) running_->thread.join();
}

int HttpServer::port() const {
  return running_->port;
}

std::string url_of(std::string server, std::string_view path) {
  server.resize(server.find_last_not_of('/') + 1);
  return server.append(path);
}

HttpResponse http_get(const std::string& url, std::chrono::milliseconds timeout) {
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) throw HttpError(url + ": not an http:// address");
  const std::size_t path = url.find('/', kScheme.size());
  httplib::Client client(url.substr(0, path));
  if (!client.is_valid()) throw HttpError(url + ": not an http:// address");
  client.set_connection_timeout(timeout);
  client.set_read_timeout(timeout);
  client.set_write_timeout(timeout);
  const auto result = client.Get(path == std::string::npos ? "/" : url.substr(path));
  if (!result) throw HttpError(url + ": " + httplib::to_string(result.error()));
  return {result->status, result->get_header_value("Content-Type"), result->body};
}

}  // namespace vigil::cluster
