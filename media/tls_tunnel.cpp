#include "media/tls_tunnel.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "media/connect.h"

namespace vigil::media {
namespace {

/// How often a wait looks whether it has been interrupted.
constexpr int kLookMilliseconds = 50;
constexpr std::size_t kMostBytes = 64 << 10;

template <typename T, void (*Free)(T*)>
struct Freed {
  void operator()(T* object) const { Free(object); }
};
using Context = std::unique_ptr<SSL_CTX, Freed<SSL_CTX, SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Freed<SSL, SSL_free>>;

std::string text_of(int error) {
  return std::generic_category().message(error);
}

[[noreturn]] void fail(const std::string& reason) {
  throw std::runtime_error(reason);
}

std::string tls_reason() {
  const unsigned long code = ERR_get_error();
  const char* text = code == 0 ? nullptr : ERR_reason_error_string(code);
  return text == nullptr ? "the connection was closed" : text;
}

/// Waits for a socket; false when interrupted.
bool await(int socket, short events, Interrupt& interrupt) {
  pollfd ready{socket, events, 0};
  while (!interrupt.expired()) {
    if (poll(&ready, 1, kLookMilliseconds) > 0) return true;
  }
  return false;
}

base::Descriptor connected_to(const std::string& host, int port, Interrupt& interrupt) {
  const Resolved found = resolve(host, std::to_string(port), 0);
  if (found.error != 0) fail("cannot find " + host + ": " + gai_strerror(found.error));
  return connected(found.addresses, interrupt);
}

Context context_of(const Tls& tls) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (!context) throw std::bad_alloc();
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_verify(context.get(), tls.insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (tls.insecure) {
    // Whoever goes without has a camera from before.
    SSL_CTX_set_min_proto_version(context.get(), TLS1_VERSION);
    SSL_CTX_set_security_level(context.get(), 0);
  } else if (tls.ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_locations(context.get(), tls.ca_file.c_str(), nullptr) != 1) {
    fail("no certificates can be read from " + tls.ca_file);
  }
  return context;
}

/// As OpenSSL's own, which would raise SIGPIPE where the other side has gone.
int write_quietly(BIO* bio, const char* data, int size) {
  int socket = -1;
  BIO_get_fd(bio, &socket);
  const auto written = static_cast<int>(::send(socket, data, static_cast<std::size_t>(size), MSG_NOSIGNAL));
  BIO_clear_retry_flags(bio);
  if (written <= 0 && BIO_sock_should_retry(written) != 0) BIO_set_retry_write(bio);
  return written;
}

const BIO_METHOD* quiet_socket() {
  static const BIO_METHOD* const method = [] {
    const BIO_METHOD* plain = BIO_s_socket();
    BIO_METHOD* quiet = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
    if (quiet == nullptr) throw std::bad_alloc();
    BIO_meth_set_write(quiet, write_quietly);
    BIO_meth_set_read(quiet, BIO_meth_get_read(plain));
    BIO_meth_set_ctrl(quiet, BIO_meth_get_ctrl(plain));
    BIO_meth_set_create(quiet, BIO_meth_get_create(plain));
    BIO_meth_set_destroy(quiet, BIO_meth_get_destroy(plain));
    return quiet;
  }();
  return method;
}

Session session_of(SSL_CTX& context, const base::Descriptor& socket, const std::string& host) {
  Session session(SSL_new(&context));
  BIO* carrier = session ? BIO_new(quiet_socket()) : nullptr;
  if (carrier == nullptr) throw std::bad_alloc();
  BIO_set_fd(carrier, socket.number(), BIO_NOCLOSE);
  SSL_set_bio(session.get(), carrier, carrier);
  std::array<unsigned char, sizeof(in6_addr)> address{};
  const bool is_address = inet_pton(AF_INET, host.c_str(), address.data()) == 1 ||
                          inet_pton(AF_INET6, host.c_str(), address.data()) == 1;
  if (is_address) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str());
  } else {
    SSL_set1_host(session.get(), host.c_str());
    SSL_set_tlsext_host_name(session.get(), host.c_str());
  }
  SSL_set_mode(session.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return session;
}

void shake_hands(SSL& session, const base::Descriptor& socket, Interrupt& interrupt) {
  while (true) {
    ERR_clear_error();
    const int code = SSL_connect(&session);
    if (code == 1) return;
    const int error = SSL_get_error(&session, code);
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) {
      const short events = error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT;
      if (!await(socket.number(), events, interrupt)) fail("no answer in time");
      continue;
    }
    // The result is there even if nobody asked for it.
    const bool verifies = SSL_get_verify_mode(&session) != SSL_VERIFY_NONE;
    if (const long verified = SSL_get_verify_result(&session); verifies && verified != X509_V_OK) {
      fail(std::string("its certificate is not trusted: ") + X509_verify_cert_error_string(verified));
    }
    fail("no TLS: " + tls_reason());
  }
}

std::pair<base::Descriptor, int> listening() {
  base::Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (!socket || bind(socket.number(), generic, size) != 0 || listen(socket.number(), 1) != 0 ||
      getsockname(socket.number(), generic, &size) != 0) {
    fail("no port of this machine to lead through: " + text_of(errno));
  }
  return {std::move(socket), ntohs(address.sin_port)};
}

/// Carries bytes between a client and the session. Of the tunnel's thread; `wake`, which ends it, belongs to
/// the tunnel, which outlives it.
class Carrier {
 public:
  Carrier(Context context, Session session, base::Descriptor server, base::Descriptor listener, int wake)
      : context_(std::move(context)),
        server_(std::move(server)),
        session_(std::move(session)),
        listener_(std::move(listener)),
        wake_(wake) {}

  void run() {
    if (!accept_client()) return;
    while (carry()) {
    }
  }

 private:
  bool accept_client() {
    std::array<pollfd, 2> ready{{{wake_, POLLIN, 0}, {listener_.number(), POLLIN, 0}}};
    while (true) {
      if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return false;
      if (ready[0].revents != 0) return false;
      const int accepted = accept4(listener_.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
      if (accepted >= 0) {
        client_ = base::Descriptor(accepted);
        break;
      }
      // Such as that no descriptor is left, which would be so the next time, too.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) return false;
    }
    listener_ = base::Descriptor();
    const int on = 1;
    setsockopt(client_.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return true;
  }

  // One turn: what can be moved is; then waits for more. False at the end of either side.
  bool carry() {
    server_events_ = 0;
    bool moved = false;
    if (up_.empty() && !receive(moved)) return false;
    if (!up_.empty() && !encrypt(moved)) return false;
    if (down_.empty() && !decrypt(moved)) return false;
    if (!down_.empty() && !send(moved)) return false;
    if (moved) return true;
    const short client_events =
        static_cast<short>((up_.empty() ? POLLIN : 0) | (down_.empty() ? 0 : POLLOUT));
    // A side of which nothing is wanted is left out: poll() would tell again and again that it has hung up.
    const auto wanted = [](const base::Descriptor& side, short events) {
      return pollfd{events == 0 ? -1 : side.number(), events, 0};
    };
    std::array<pollfd, 3> ready{
        {{wake_, POLLIN, 0}, wanted(client_, client_events), wanted(server_, server_events_)}};
    if (poll(ready.data(), ready.size(), -1) < 0) return errno == EINTR;
    return ready[0].revents == 0;
  }

  bool receive(bool& moved) {
    up_.resize(kMostBytes);
    const ssize_t count = recv(client_.number(), up_.data(), up_.size(), 0);
    up_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    moved = moved || count > 0;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  bool send(bool& moved) {
    const ssize_t count = ::send(client_.number(), down_.data(), down_.size(), MSG_NOSIGNAL);
    if (count > 0) down_.erase(down_.begin(), down_.begin() + count);
    moved = moved || count > 0;
    return count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
  }

  bool encrypt(bool& moved) {
    std::size_t count = 0;
    ERR_clear_error();
    const int code = SSL_write_ex(session_.get(), up_.data(), up_.size(), &count);
    if (code == 1) up_.erase(up_.begin(), up_.begin() + static_cast<std::ptrdiff_t>(count));
    return went_well(code, moved);
  }

  bool decrypt(bool& moved) {
    std::size_t count = 0;
    down_.resize(kMostBytes);
    ERR_clear_error();
    const int code = SSL_read_ex(session_.get(), down_.data(), down_.size(), &count);
    down_.resize(count);
    return went_well(code, moved);
  }

  bool went_well(int code, bool& moved) {
    if (code == 1) {
      moved = true;
      return true;
    }
    const int error = SSL_get_error(session_.get(), code);
    if (error == SSL_ERROR_WANT_READ) server_events_ |= POLLIN;
    if (error == SSL_ERROR_WANT_WRITE) server_events_ |= POLLOUT;
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
  }

  Context context_;
  base::Descriptor server_;
  // After the socket: it goes first.
  Session session_;
  base::Descriptor listener_;
  int wake_;
  base::Descriptor client_;
  /// On their way to the server, and to the client.
  std::vector<char> up_;
  std::vector<char> down_;
  short server_events_ = 0;
};

}  // namespace

TlsTunnel::TlsTunnel(const std::string& host, int port, const Tls& tls, Interrupt& interrupt) {
  Context context = context_of(tls);
  base::Descriptor server = connected_to(host, port, interrupt);
  Session session = session_of(*context, server, host);
  shake_hands(*session, server, interrupt);
  auto [listener, own_port] = listening();
  port_ = own_port;
  wake_ = base::Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake_) fail("no way to wake a thread: " + text_of(errno));
  auto carrier = std::make_unique<Carrier>(std::move(context), std::move(session), std::move(server),
                                           std::move(listener), wake_.number());
  thread_ = std::thread([carrier = std::move(carrier)] { carrier->run(); });
}

TlsTunnel::~TlsTunnel() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_.number(), &one, sizeof one));
  thread_.join();
}

}  // namespace vigil::media
