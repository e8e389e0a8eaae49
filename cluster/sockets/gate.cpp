#include "cluster/sockets/gate.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <iterator>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <sys/stat.h>

#include "cluster/sockets/pace.h"
#include "cluster/sockets/spare_descriptors.h"
#include "cluster/sockets/tcp_address.h"

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using asio::local::stream_protocol;
using boost::system::error_code;
using SteadyClock = std::chrono::steady_clock;

// Of a connection: the client's, and both ends of the one to the server.
constexpr std::uint64_t kDescriptors = 3;
constexpr std::size_t kFromClient = 4 << 10;
constexpr std::size_t kFromServer = 32 << 10;
// Of the kernel, for what a client has not taken; the kernel doubles it.
constexpr int kSendBuffer = 256 << 10;
// A client that takes nothing, or does not acknowledge it, for so long is gone.
constexpr auto kUnsent = std::chrono::seconds(60);
// How long accepting rests when there are no descriptors.
constexpr auto kRest = std::chrono::milliseconds(200);
// How long a client has to close a connection that the server has closed.
constexpr auto kFarewell = std::chrono::seconds(1);
// Connections that reach the server each second, after as many as may be open at once: what subscriptions
// cost when they come and go is bounded as well as what they cost while they stand.
constexpr double kOfAddressPerSecond = 16;
constexpr double kPerSecond = 64;
constexpr auto kLookAgain = std::chrono::milliseconds(20);
// Addresses that are remembered although nothing of them is open.
constexpr std::size_t kAddresses = 4096;

std::system_error failed(int error) {
  return {error, std::generic_category()};
}

}  // namespace

int fitting_connections(int wanted, std::uint64_t descriptors, int gates) {
  const std::uint64_t fitting = descriptors / 4 / kDescriptors / static_cast<std::uint64_t>(gates);
  return static_cast<int>(std::clamp<std::uint64_t>(fitting, 1, static_cast<std::uint64_t>(wanted)));
}

class Gate::Running {
 public:
  Running(const tcp::endpoint& where, const std::string& inner, const GateOptions& options,
          const PeerLimits& limits, std::chrono::milliseconds linger);
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  tcp::endpoint endpoint() const { return endpoint_; }

 private:
  friend class Gate::Connection;
  using ConnectionPtr = std::shared_ptr<Connection>;

  void accept();
  void take_up(tcp::socket socket);
  ConnectionPtr stranger_to_displace() const;
  /// Connections that have sent something and want the server: one after the other.
  void introduce_next();
  void introduced(const Connection& connection);
  void forget_addresses();
  void refuse(Refusal reason);
  void remove(const ConnectionPtr& connection);
  void drain();

  GateOptions options_;
  PeerLimits limits_;
  stream_protocol::endpoint inner_;
  std::chrono::milliseconds linger_;
  asio::io_context context_{1};
  tcp::acceptor acceptor_{context_};
  tcp::endpoint endpoint_;
  asio::steady_timer rest_{context_};
  asio::steady_timer deadline_{context_};
  SpareDescriptors spares_;
  std::list<ConnectionPtr> connections_;
  struct Address {
    int open = 0;
    Pace pace;
  };
  std::map<std::string, Address> addresses_;
  Pace pace_;
  asio::steady_timer look_again_{context_};
  /// Those that do not know each other yet, the oldest first.
  std::list<ConnectionPtr> strangers_;
  std::deque<std::weak_ptr<Connection>> waiting_;
  /// The one that is being connected with the server.
  const Connection* introducing_ = nullptr;
  bool draining_ = false;
  std::thread thread_;
};

/// A client, and its connection to the server once it has said something.
class Gate::Connection : public std::enable_shared_from_this<Gate::Connection> {
 public:
  Connection(Running& gate, tcp::socket socket, std::string key)
      : gate_(gate),
        outer_(std::move(socket)),
        inner_(gate.context_),
        patience_(gate.context_),
        pause_(gate.context_),
        farewell_(gate.context_),
        account_(gate.limits_, SteadyClock::now()),
        key_(std::move(key)) {}

  const std::string& key() const { return key_; }
  bool closed() const { return closed_; }

  void start() {
    patience_.expires_after(gate_.options_.handshake_time);
    patience_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->close(Refusal::handshake);
    });
    read_client();
  }

  /// Connects it with the server. What it sent so far is passed on.
  void introduce() {
    error_code error;
    inner_.open(stream_protocol(), error);
    if (!error) inner_.non_blocking(true, error);
    // A local one stands at once or never.
    if (!error) inner_.connect(gate_.inner_, error);
    if (error) {
      close(error == asio::error::no_descriptors ? std::optional(Refusal::descriptors) : std::nullopt);
      return;
    }
    read_server();
    write_server();
  }

  void close(std::optional<Refusal> reason = std::nullopt) {
    if (closed_) return;
    closed_ = true;
    error_code ignored;
    outer_.close(ignored);
    inner_.close(ignored);
    patience_.cancel();
    pause_.cancel();
    farewell_.cancel();
    if (reason) gate_.refuse(*reason);
    gate_.remove(shared_from_this());
  }

  std::list<std::shared_ptr<Connection>>::iterator place;
  std::optional<std::list<std::shared_ptr<Connection>>::iterator> place_of_stranger;

 private:
  void read_client() {
    outer_.async_read_some(
        asio::buffer(from_client_),
        [self = shared_from_this()](error_code error, std::size_t size) { self->client_sent(error, size); });
  }

  void client_sent(error_code error, std::size_t size) {
    if (closed_) return;
    if (error) return close();
    if (server_gone_) return read_client();
    heard_ = SteadyClock::now();
    const auto bytes = std::as_bytes(std::span(from_client_)).first(size);
    if (const auto refusal = account_.from_client(bytes, heard_)) return close(refusal);
    to_server_ = size;
    if (inner_.is_open()) {
      write_server();
    } else {
      gate_.waiting_.push_back(weak_from_this());
      gate_.introduce_next();
    }
  }

  void write_server() {
    asio::async_write(inner_, asio::buffer(from_client_.data(), to_server_),
                      [self = shared_from_this()](error_code error, std::size_t) {
                        if (self->closed_) return;
                        // Why it went, it says on the other way.
                        if (error) self->server_gone_ = true;
                        self->read_on();
                      });
  }

  void read_on() {
    look_whether_acquainted();
    const base::Duration wait = account_.wait();
    if (wait.count() <= 0) return read_client();
    pause_.expires_after(wait);
    pause_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->read_client();
    });
  }

  void read_server() {
    from_server_.resize(kFromServer);
    inner_.async_read_some(
        asio::buffer(from_server_),
        [self = shared_from_this()](error_code error, std::size_t size) { self->server_sent(error, size); });
  }

  void server_sent(error_code error, std::size_t size) {
    if (closed_) return;
    gate_.introduced(*this);
    if (error) return say_farewell();
    account_.from_server(std::as_bytes(std::span(from_server_)).first(size));
    look_whether_acquainted();
    asio::async_write(outer_, asio::buffer(from_server_.data(), size),
                      [self = shared_from_this()](error_code failure, std::size_t) {
                        if (self->closed_) return;
                        if (failure) return self->close();
                        self->read_server();
                      });
  }

  void look_whether_acquainted() {
    if (!place_of_stranger || !account_.acquainted()) return;
    patience_.cancel();
    gate_.strangers_.erase(*place_of_stranger);
    place_of_stranger.reset();
    if (gate_.limits_.silence.count() > 0) wait_for_silence(heard_ + gate_.limits_.silence);
  }

  void wait_for_silence(SteadyClock::time_point until) {
    patience_.expires_at(until);
    patience_.async_wait([self = shared_from_this(), until](error_code cancelled) {
      if (cancelled || self->closed_) return;
      const auto latest = self->heard_ + self->gate_.limits_.silence;
      if (latest <= until) return self->close(Refusal::silence);
      self->wait_for_silence(latest);
    });
  }

  // Closed at once, what the client has not read yet could be lost with what we have not read of it.
  void say_farewell() {
    server_gone_ = true;
    error_code ignored;
    inner_.close(ignored);
    outer_.shutdown(tcp::socket::shutdown_send, ignored);
    farewell_.expires_after(kFarewell);
    farewell_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->close();
    });
  }

  Running& gate_;
  tcp::socket outer_;
  stream_protocol::socket inner_;
  asio::steady_timer patience_;
  SteadyClock::time_point heard_{};
  asio::steady_timer pause_;
  asio::steady_timer farewell_;
  PeerAccount account_;
  std::string key_;
  std::array<char, kFromClient> from_client_{};
  std::size_t to_server_ = 0;
  std::vector<char> from_server_;
  bool server_gone_ = false;
  bool closed_ = false;
};

Gate::Running::Running(const tcp::endpoint& where, const std::string& inner, const GateOptions& options,
                       const PeerLimits& limits, std::chrono::milliseconds linger)
    : options_(options),
      limits_(limits),
      inner_(inner),
      linger_(linger),
      pace_(options.connections, kPerSecond, SteadyClock::now()) {
  acceptor_.open(where.protocol());
  acceptor_.set_option(tcp::acceptor::reuse_address(true));
  acceptor_.set_option(asio::socket_base::send_buffer_size(kSendBuffer));
  acceptor_.bind(where);
  acceptor_.listen();
  endpoint_ = acceptor_.local_endpoint();
  if (!spares_.hold()) throw failed(EMFILE);
  accept();
  thread_ = std::thread([this] { context_.run(); });
}

Gate::Running::~Running() {
  asio::post(context_, [this] { drain(); });
  thread_.join();
}

void Gate::Running::accept() {
  acceptor_.async_accept([this](error_code error, tcp::socket socket) {
    if (draining_) return;
    if (!error) {
      take_up(std::move(socket));
      accept();
      return;
    }
    if (error == asio::error::connection_aborted) return accept();
    if (error == asio::error::no_descriptors || error.value() == ENFILE) refuse(Refusal::descriptors);
    // The connection waits where it is; asked for again at once, it would fail at once, again and again.
    rest_.expires_after(kRest);
    rest_.async_wait([this](error_code cancelled) {
      if (!cancelled) accept();
    });
  });
}

void Gate::Running::take_up(tcp::socket socket) {
  error_code error;
  socket.set_option(tcp::no_delay(true), error);
  socket.set_option(asio::socket_base::keep_alive(true), error);
  const int unsent = static_cast<int>(std::chrono::milliseconds(kUnsent).count());
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_USER_TIMEOUT, &unsent, sizeof unsent);
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  std::string key = network_of(peer.address());
  if (addresses_.size() >= kAddresses) forget_addresses();
  Address& own =
      addresses_
          .try_emplace(
              key, Address{0, Pace(options_.connections_of_address, kOfAddressPerSecond, SteadyClock::now())})
          .first->second;
  if (own.open >= options_.connections_of_address) {
    // Whoever floods from there displaces strangers of there, not those who are known.
    const auto oldest = std::find_if(strangers_.begin(), strangers_.end(),
                                     [&](const ConnectionPtr& each) { return each->key() == key; });
    if (oldest == strangers_.end()) return refuse(Refusal::address);
    ConnectionPtr(*oldest)->close(Refusal::handshake);
  }
  if (strangers_.size() >= static_cast<std::size_t>(options_.handshakes) ||
      (connections_.size() >= static_cast<std::size_t>(options_.connections) && !strangers_.empty()))
    stranger_to_displace()->close(Refusal::handshake);
  if (connections_.size() >= static_cast<std::size_t>(options_.connections))
    return refuse(Refusal::connections);
  auto connection = std::make_shared<Connection>(*this, std::move(socket), std::move(key));
  ++own.open;
  connection->place = connections_.insert(connections_.end(), connection);
  connection->place_of_stranger = strangers_.insert(strangers_.end(), connection);
  if (options_.observer != nullptr) options_.observer->connections(static_cast<int>(connections_.size()));
  connection->start();
}

// The oldest of the address that has most of them, so that one that floods displaces itself, and nobody who
// is only farther away.
Gate::Running::ConnectionPtr Gate::Running::stranger_to_displace() const {
  std::map<std::string_view, std::size_t> of_address;
  for (const ConnectionPtr& each : strangers_) ++of_address[each->key()];
  return *std::max_element(strangers_.begin(), strangers_.end(), [&](const auto& a, const auto& b) {
    return of_address.at(a->key()) < of_address.at(b->key());
  });
}

void Gate::Running::introduce_next() {
  if (introducing_ != nullptr) return;
  std::erase_if(waiting_, [](const std::weak_ptr<Connection>& each) {
    const ConnectionPtr connection = each.lock();
    return connection == nullptr || connection->closed();
  });
  const auto now = SteadyClock::now();
  const auto next = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& each) {
    return addresses_.at(each.lock()->key()).pace.has_one(now);
  });
  if (waiting_.empty()) return;
  if (next == waiting_.end() || !pace_.has_one(now)) {
    look_again_.expires_after(kLookAgain);
    look_again_.async_wait([this](error_code cancelled) {
      if (!cancelled) introduce_next();
    });
    return;
  }
  const ConnectionPtr connection = next->lock();
  waiting_.erase(next);
  pace_.take();
  addresses_.at(connection->key()).pace.take();
  if (spares_.hold()) {
    spares_.release();
    introducing_ = connection.get();
    connection->introduce();
  } else {
    connection->close(Refusal::descriptors);
    introduce_next();
  }
}

void Gate::Running::forget_addresses() {
  const auto now = SteadyClock::now();
  for (auto each = addresses_.begin(); each != addresses_.end();) {
    const bool forgotten = each->second.open == 0 && each->second.pace.is_full(now);
    each = forgotten ? addresses_.erase(each) : std::next(each);
  }
}

void Gate::Running::introduced(const Connection& connection) {
  if (introducing_ != &connection) return;
  introducing_ = nullptr;
  static_cast<void>(spares_.hold());
  introduce_next();
}

void Gate::Running::refuse(Refusal reason) {
  if (options_.observer != nullptr) options_.observer->refused(reason);
}

void Gate::Running::remove(const ConnectionPtr& connection) {
  if (connection->place_of_stranger) strangers_.erase(*connection->place_of_stranger);
  connection->place_of_stranger.reset();
  connections_.erase(connection->place);
  --addresses_.at(connection->key()).open;
  if (options_.observer != nullptr) options_.observer->connections(static_cast<int>(connections_.size()));
  introduced(*connection);
  if (draining_ && connections_.empty()) context_.stop();
}

// The server has closed its side, or will: each connection ends when what it has left is sent.
void Gate::Running::drain() {
  draining_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  rest_.cancel();
  // Those that the server has never heard of wait for nothing.
  while (!waiting_.empty()) waiting_.pop_front();
  for (const ConnectionPtr& each : std::list(strangers_)) each->close();
  if (connections_.empty() || linger_.count() == 0) return context_.stop();
  deadline_.expires_after(linger_);
  deadline_.async_wait([this](error_code) { context_.stop(); });
}

Gate::Gate(const std::string& endpoint, const std::string& inner, const GateOptions& options,
           const PeerLimits& limits, std::chrono::milliseconds linger) {
  try {
    running_ = std::make_unique<Running>(parse_tcp(endpoint), inner, options, limits, linger);
  } catch (const boost::system::system_error& error) {
    throw failed(error.code().value());
  }
  const tcp::endpoint where = running_->endpoint();
  endpoint_ = tcp_text(where);
}

Gate::~Gate() = default;

void Entrance::open(zmq::socket_t& socket, const std::string& endpoint, const GateOptions& options,
                    const PeerLimits& limits, std::chrono::milliseconds linger) {
  constexpr std::string_view kIpc = "ipc://";
  if (endpoint.starts_with("tcp://")) {
    inner_.emplace(socket);
    gate_ = std::make_unique<Gate>(endpoint, inner_->path(), options, limits, linger);
    endpoint_ = gate_->endpoint();
    return;
  }
  socket.bind(endpoint);
  endpoint_ = socket.get(zmq::sockopt::last_endpoint);
  if (endpoint.starts_with(kIpc) && !endpoint.starts_with("ipc://@")) {
    const std::string path = endpoint_.substr(kIpc.size());
    if (::chmod(path.c_str(), S_IRUSR | S_IWUSR) != 0) throw failed(errno);
  }
}

}  // namespace vigil::cluster
