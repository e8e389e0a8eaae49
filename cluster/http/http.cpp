#include "cluster/http/http.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <exception>
#include <map>
#include <system_error>
#include <thread>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <pthread.h>

#include "cluster/http/connection_book.h"
#include "cluster/http/http_connection.h"
#include "cluster/http/http_router.h"
#include "cluster/http/shared_answer.h"
#include "cluster/http/tls.h"
#include "cluster/process/clock.h"
#include "cluster/sockets/tcp_address.h"

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

// After a connection could not be taken, as without free descriptors: they come back when others are closed.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);

constexpr std::size_t kSlowThreads = 4;

struct Address {
  std::string host;
  std::uint16_t port = 0;
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
  if (error != std::errc() || last != end || address.host.empty())
    throw HttpError("cannot listen on " + listen + ": not HOST:PORT");
  return address;
}

tcp::acceptor bound(asio::io_context& io, const std::string& listen) {
  const Address address = parse(listen);
  tcp::resolver resolver(io);
  error_code error;
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  for (const auto& entry : found) {
    tcp::acceptor acceptor(io);
    acceptor.open(entry.endpoint().protocol(), error);
    if (error) continue;
    // A restart must not wait for the connections of the process before. Two processes still cannot listen on
    // one port, each unseen by the other.
    acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    acceptor.bind(entry.endpoint(), error);
    if (error) continue;
    acceptor.listen(asio::socket_base::max_listen_connections, error);
    if (!error) return acceptor;
  }
  const bool is_taken =
      error == asio::error::address_in_use || error.value() == EADDRNOTAVAIL || found.empty();
  throw HttpError("cannot listen on " + listen + ": " +
                  (is_taken ? "the address is in use or not this machine's" : error.message()));
}

struct Peer {
  std::string address;
  bool local = false;
};

Peer peer_of(const tcp::endpoint& endpoint) {
  const asio::ip::address address = endpoint.address();
  const bool mapped = address.is_v6() && address.to_v6().is_v4_mapped();
  const bool local = mapped ? asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback()
                            : address.is_loopback();
  return {local ? std::string() : network_of(address), local};
}

const base::Clock& system_clock() {
  static const SystemClock clock;
  return clock;
}

}  // namespace

class HttpServer::Running final : public HttpHost {
 public:
  explicit Running(Options options)
      : options_(std::move(options)),
        router_(options_.routes),
        book_(options_.limits),
        acceptor_(bound(io_, options_.listen)),
        pause_(io_) {
    if (options_.tls) tls_.emplace(*options_.tls, options_.log);
    if (std::ranges::any_of(options_.routes, &HttpRoute::slow)) slow_worker_.emplace(kSlowThreads);
    const base::Clock& clock = options_.clock != nullptr ? *options_.clock : system_clock();
    for (std::size_t i = 0; i < router_.size(); ++i) shared_.emplace_back(router_.route(i).shared_for, clock);
    port_ = acceptor_.local_endpoint().port();
    accept();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "http");
      io_.run();
    });
  }

  ~Running() override {
    io_.stop();
    thread_.join();
    for (asio::thread_pool* pool : {&worker_, slow_worker_ ? &*slow_worker_ : nullptr}) {
      if (pool == nullptr) continue;
      pool->stop();
      pool->join();
    }
    // Connections have to go before what they run on.
    for (SharedAnswer& each : shared_) each.clear();
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  int port() const { return port_; }

  const HttpLimits& limits() const override { return options_.limits; }
  const HttpRouter& router() const override { return router_; }
  void touched(ConnectionBook::Id id) override { book_.touch(id); }
  void left(ConnectionBook::Id id) override {
    book_.leave(id);
    connections_.erase(id);
  }

  void answer(std::size_t route, HttpRequest request, std::function<void(HttpAnswer)> done) override {
    const HttpRoute& asked = router_.route(route);
    if (asked.quick) return done(made(asked, request));
    if (asked.shared_for > base::Duration(0)) {
      if (!shared_[route].ask(std::move(done))) return;
      return work(asked, std::move(request),
                  [this, route](HttpAnswer answer) { shared_[route].made(std::move(answer)); });
    }
    work(asked, std::move(request), std::move(done));
  }

 private:
  /// What a handler answers, or 500.
  HttpAnswer made(const HttpRoute& route, const HttpRequest& request) const {
    try {
      return std::make_shared<const HttpResponse>(route.handler(request));
    } catch (const std::exception& error) {
      // Whoever asks may be a stranger.
      if (options_.log) options_.log("http: " + route.path + " failed: " + error.what());
      return std::make_shared<const HttpResponse>(
          HttpResponse{.status = 500, .body = "500 Internal Server Error\n"});
    }
  }

  void work(const HttpRoute& route, HttpRequest request, std::function<void(HttpAnswer)> done) {
    asio::thread_pool& pool = route.slow ? *slow_worker_ : worker_;
    asio::post(pool, [this, &route, request = std::move(request), done = std::move(done)]() mutable {
      HttpAnswer answer = made(route, request);
      asio::post(io_,
                 [done = std::move(done), answer = std::move(answer)]() mutable { done(std::move(answer)); });
    });
  }

  void accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (!error) {
        admit(std::move(socket));
        return accept();
      }
      if (error == asio::error::operation_aborted) return;
      pause_.expires_after(kAcceptPause);
      pause_.async_wait([this](error_code stopped) {
        if (!stopped) accept();
      });
    });
  }

  void admit(tcp::socket socket) {
    error_code error;
    const tcp::endpoint endpoint = socket.remote_endpoint(error);
    if (error) return;  // it is gone again
    // An answer must not wait for the client's word that it got the one before.
    socket.set_option(tcp::no_delay(true), error);
    const Peer peer = peer_of(endpoint);
    const ConnectionBook::Admitted admitted = book_.admit(peer.address, peer.local);
    if (admitted.evicted) drop(*admitted.evicted);
    const auto connection = tls_ ? make_connection(std::move(socket), *tls_->current(), *this, admitted.id)
                                 : make_connection(std::move(socket), *this, admitted.id);
    connections_[admitted.id] = connection;
    connection->start();
  }

  void drop(ConnectionBook::Id id) {
    const auto entry = connections_.find(id);
    if (entry == connections_.end()) return;
    if (const auto connection = entry->second.lock()) connection->drop();
  }

  const Options options_;
  const HttpRouter router_;
  ConnectionBook book_;
  std::map<ConnectionBook::Id, std::weak_ptr<HttpConnection>> connections_;
  std::optional<TlsIdentity> tls_;
  std::vector<SharedAnswer> shared_;
  // Behind what connections use when they end; the worker, which holds some of them, behind what they run on.
  asio::io_context io_{1};
  asio::thread_pool worker_{1};
  std::optional<asio::thread_pool> slow_worker_;
  tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  int port_ = 0;
  std::thread thread_;
};

HttpServer::HttpServer(Options options) : running_(std::make_unique<Running>(std::move(options))) {}
HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return running_->port();
}

}  // namespace vigil::cluster
