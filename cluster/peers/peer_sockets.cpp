#include "cluster/peers/peer_sockets.h"

#include <list>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "cluster/peers/host_check.h"

namespace vigil::cluster {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

std::string text_of(const tcp::endpoint& endpoint) {
  return text_of(PeerAddress{endpoint.address().to_string(), endpoint.port()});
}

std::string handshake_failure(SSL* session) {
  const long verdict = SSL_get_verify_result(session);
  if (verdict != X509_V_OK)
    return std::string("its certificate is refused: ") + X509_verify_cert_error_string(verdict);
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return std::string("no TLS: ") + (reason == nullptr ? "the connection was closed" : reason);
}

}  // namespace

class PeerSockets::Running {
 public:
  explicit Running(Options options)
      : options_(std::move(options)), log_(std::make_shared<PeerLog>(options_.log)) {}

  std::shared_ptr<PeerLog> log() const { return log_; }

  void start() {
    if (options_.certificates) look_at_certificates();
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "peers");
      const auto work = asio::make_work_guard(io_);
      io_.run();
    });
  }

  void stop() {
    io_.stop();
    thread_.join();
  }

  PeerAddress listen(const PeerAddress& address, std::function<void(SecureSocket)> accepted) {
    tcp::acceptor acceptor(io_);
    try {
      tcp::resolver resolver(io_);
      const tcp::endpoint endpoint = *resolver.resolve(address.host, std::to_string(address.port)).begin();
      check_plain_text(endpoint);
      acceptor.open(endpoint.protocol());
      acceptor.set_option(tcp::acceptor::reuse_address(true));
      acceptor.bind(endpoint);
      acceptor.listen();
    } catch (const std::exception& error) {
      throw std::runtime_error("cannot listen for nodes on " + cluster::text_of(address) + ": " +
                               error.what());
    }
    const tcp::endpoint real = acceptor.local_endpoint();
    asio::post(io_, [this, own = std::move(acceptor), accepted = std::move(accepted)]() mutable {
      acceptor_.emplace(std::move(own));
      accepted_ = std::move(accepted);
      accept();
    });
    return {address.host, real.port()};
  }

  void stop_listening() {
    asio::post(io_, [this] {
      acceptor_.reset();
      accepted_ = nullptr;
    });
  }

  void resolve(const PeerAddress& address, std::function<void(std::vector<PeerAddress>)> done) {
    asio::post(io_, [this, address, done = std::move(done)] {
      resolver_.async_resolve(
          address.host, std::to_string(address.port), [done](auto, const tcp::resolver::results_type& found) {
            std::vector<PeerAddress> addresses;
            for (const auto& each : found)
              addresses.push_back({each.endpoint().address().to_string(), each.endpoint().port()});
            done(std::move(addresses));
          });
    });
  }

  void dial(PeerAddress address, Dialed done) {
    asio::post(io_, [this, address = std::move(address), done = std::move(done)]() mutable {
      std::make_shared<Attempt>(*this)->dial(address, std::move(done));
    });
  }

 private:
  /// A connection on its way, of either side.
  class Attempt : public std::enable_shared_from_this<Attempt> {
   public:
    explicit Attempt(Running& owner)
        : owner_(owner), socket_(owner.io_), timer_(owner.io_), resolver_(owner.io_) {}

    void dial(const PeerAddress& address, Dialed done) {
      host_ = address.host;
      peer_ = cluster::text_of(address);
      done_ = std::move(done);
      begin("no connection within its time");
      resolver_.async_resolve(address.host, std::to_string(address.port),
                              [self = shared_from_this()](auto error, const auto& found) {
                                if (error) return self->fail("its name is unknown: " + error.message());
                                self->connect(found);
                              });
    }

    void accept(tcp::socket socket) {
      socket_ = std::move(socket);
      boost::system::error_code gone;
      const tcp::endpoint remote = socket_.remote_endpoint(gone);
      peer_ = text_of(remote);
      begin("no handshake within its time");
      handshake(/* as_client = */ false);
    }

    /// Of another thread's or an attempt's time: somebody else needs its place.
    void drop() { fail("too many connections that say nothing"); }

   private:
    void begin(std::string late) {
      timer_.expires_after(owner_.options_.patience);
      timer_.async_wait([self = shared_from_this(), late = std::move(late)](auto error) {
        if (!error) self->fail(late);
      });
    }

    void connect(const tcp::resolver::results_type& found) {
      if (ended_) return;
      // In turn, as a name may stand for addresses at which nobody is any more.
      asio::async_connect(socket_, found, [self = shared_from_this()](auto error, const tcp::endpoint& to) {
        if (self->ended_) return;
        if (error) return self->fail(error.message());
        try {
          self->owner_.check_plain_text(to);
        } catch (const std::exception& refused) {
          return self->fail(refused.what());
        }
        self->handshake(/* as_client = */ true);
      });
    }

    void handshake(bool as_client) {
      boost::system::error_code error;
      socket_.set_option(tcp::no_delay(true), error);
      socket_.non_blocking(true, error);
      if (error) return fail(error.message());
      if (!owner_.options_.certificates) return finish();
      context_ = owner_.options_.certificates->current();
      session_.reset(SSL_new(context_.get()), SSL_free);
      if (!session_ || !use_descriptor(session_.get(), socket_.native_handle()))
        return fail("no memory for a TLS session");
      if (as_client) {
        expect_host(session_.get(), host_);
        SSL_set_connect_state(session_.get());
      } else {
        SSL_set_accept_state(session_.get());
      }
      step();
    }

    void step() {
      if (ended_) return;
      ERR_clear_error();
      const int result = SSL_do_handshake(session_.get());
      if (result == 1) return done_ ? listen_for_first_word() : finish();
      wait(result);
    }

    /// In TLS 1.3 this side is done before the other one has looked at its certificate; what that makes of it
    /// comes instead of its first word.
    void listen_for_first_word() {
      if (ended_) return;
      ERR_clear_error();
      char first = 0;
      std::size_t bytes = 0;
      const int result = SSL_peek_ex(session_.get(), &first, 1, &bytes);
      result == 1 ? finish() : wait(result);
    }

    /// Goes on when the socket is ready for what the session wants.
    void wait(int result) {
      const auto again = [self = shared_from_this()](auto error) {
        if (error) return self->fail(error.message());
        SSL_is_init_finished(self->session_.get()) ? self->listen_for_first_word() : self->step();
      };
      switch (SSL_get_error(session_.get(), result)) {
        case SSL_ERROR_WANT_READ:
          return socket_.async_wait(tcp::socket::wait_read, again);
        case SSL_ERROR_WANT_WRITE:
          return socket_.async_wait(tcp::socket::wait_write, again);
        default:
          return fail(handshake_failure(session_.get()));
      }
    }

    void finish() {
      if (std::exchange(ended_, true)) return;
      timer_.cancel();
      boost::system::error_code error;
      const int descriptor = socket_.release(error);
      SecureSocket made(error ? -1 : descriptor, std::move(session_), peer_);
      if (done_) return std::exchange(done_, nullptr)(std::move(made));
      owner_.incoming_.remove(shared_from_this());
      if (owner_.accepted_) owner_.accepted_(std::move(made));
    }

    void fail(const std::string& reason) {
      if (std::exchange(ended_, true)) return;
      const auto self = shared_from_this();
      timer_.cancel();
      resolver_.cancel();
      boost::system::error_code ignored;
      socket_.close(ignored);
      if (done_) return std::exchange(done_, nullptr)("no connection to " + peer_ + ": " + reason);
      owner_.incoming_.remove(self);
      owner_.log_->say("peers: refused a connection of " + peer_ + ": " + reason);
    }

    Running& owner_;
    tcp::socket socket_;
    asio::steady_timer timer_;
    tcp::resolver resolver_;
    std::string host_;
    std::string peer_;
    Dialed done_;
    std::shared_ptr<SSL_CTX> context_;
    std::shared_ptr<SSL> session_;
    bool ended_ = false;
  };

  void check_plain_text(const tcp::endpoint& endpoint) const {
    if (options_.certificates || options_.allow_plain_text || endpoint.address().is_loopback()) return;
    throw std::runtime_error(text_of(endpoint) +
                             " is beyond this machine, and there are no certificates (cluster.tls_dir)");
  }

  void look_at_certificates() {
    look_.expires_after(options_.look);
    look_.async_wait([this](auto cancelled) {
      if (cancelled) return;
      options_.certificates->look();
      look_at_certificates();
    });
  }

  void accept() {
    if (!acceptor_) return;
    acceptor_->async_accept([this](auto error, tcp::socket socket) {
      if (!acceptor_) return;
      if (error) {
        // For want of descriptors, say: those that wait will still be there.
        log_->say("peers: cannot accept a connection: " + error.message());
        pause_.expires_after(std::chrono::milliseconds(200));
        return pause_.async_wait([this](auto cancelled) {
          if (!cancelled) accept();
        });
      }
      while (incoming_.size() >= options_.handshakes) {
        const auto oldest = incoming_.front();
        oldest->drop();
      }
      const auto attempt = incoming_.emplace_back(std::make_shared<Attempt>(*this));
      attempt->accept(std::move(socket));
      accept();
    });
  }

  const Options options_;
  const std::shared_ptr<PeerLog> log_;
  asio::io_context io_{1};
  asio::steady_timer pause_{io_};
  asio::steady_timer look_{io_};
  tcp::resolver resolver_{io_};
  std::optional<tcp::acceptor> acceptor_;
  std::function<void(SecureSocket)> accepted_;
  std::list<std::shared_ptr<Attempt>> incoming_;
  std::thread thread_;
};

PeerSockets::PeerSockets(Options options) : running_(std::make_unique<Running>(std::move(options))) {
  running_->start();
}

PeerSockets::~PeerSockets() {
  running_->stop();
}

PeerAddress PeerSockets::listen(const PeerAddress& address, std::function<void(SecureSocket)> accepted) {
  return running_->listen(address, std::move(accepted));
}

void PeerSockets::resolve(const PeerAddress& address, std::function<void(std::vector<PeerAddress>)> done) {
  running_->resolve(address, std::move(done));
}

void PeerSockets::stop_listening() {
  running_->stop_listening();
}

std::shared_ptr<PeerLog> PeerSockets::log() const {
  return running_->log();
}

void PeerSockets::dial(const PeerAddress& address, Dialed done) {
  running_->dial(address, std::move(done));
}

}  // namespace vigil::cluster
