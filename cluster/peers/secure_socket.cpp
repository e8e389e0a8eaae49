#include "cluster/peers/secure_socket.h"

#include <cerrno>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

namespace vigil::cluster {
namespace {

int write_quietly(BIO* bio, const char* from, int size) {
  int descriptor = -1;
  BIO_get_fd(bio, &descriptor);
  BIO_clear_retry_flags(bio);
  const auto sent = static_cast<int>(::send(descriptor, from, static_cast<std::size_t>(size), MSG_NOSIGNAL));
  if (sent < 0 && BIO_sock_should_retry(sent) != 0) BIO_set_retry_write(bio);
  return sent;
}

/// OpenSSL's own kind of a socket, but for writing. Made once; OpenSSL reads it from any thread.
const BIO_METHOD* quiet_socket() {
  static const BIO_METHOD* const method = [] {
    const BIO_METHOD* const plain = BIO_s_socket();
    BIO_METHOD* const quiet = BIO_meth_new(BIO_TYPE_SOCKET, "socket without SIGPIPE");
    if (quiet == nullptr) return quiet;
    BIO_meth_set_read(quiet, BIO_meth_get_read(plain));
    BIO_meth_set_write(quiet, write_quietly);
    BIO_meth_set_ctrl(quiet, BIO_meth_get_ctrl(plain));
    BIO_meth_set_create(quiet, BIO_meth_get_create(plain));
    BIO_meth_set_destroy(quiet, BIO_meth_get_destroy(plain));
    return quiet;
  }();
  return method;
}

}  // namespace

bool use_descriptor(SSL* session, int descriptor) {
  BIO* const bio = quiet_socket() == nullptr ? nullptr : BIO_new(quiet_socket());
  if (bio == nullptr) return false;
  BIO_set_fd(bio, descriptor, BIO_NOCLOSE);
  SSL_set_bio(session, bio, bio);
  return true;
}

SecureSocket::SecureSocket(SecureSocket&& other) noexcept {
  *this = std::move(other);
}

SecureSocket& SecureSocket::operator=(SecureSocket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(owns_, other.owns_);
  std::swap(session_, other.session_);
  std::swap(peer_, other.peer_);
  return *this;
}

SecureSocket::~SecureSocket() {
  // Says good-bye, if the socket takes it at once.
  if (session_ && descriptor_ >= 0) SSL_shutdown(session_.get());
  if (descriptor_ >= 0 && owns_) ::close(descriptor_);
}

int SecureSocket::lend() {
  owns_ = false;
  return descriptor_;
}

SecureSocket::Outcome SecureSocket::outcome_of(int result) const {
  const int error = SSL_get_error(session_.get(), result);
  ERR_clear_error();
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? Outcome::would_block
                                                                       : Outcome::closed;
}

SecureSocket::Outcome SecureSocket::read(void* to, std::size_t size, std::size_t& bytes) {
  bytes = 0;
  if (session_) {
    ERR_clear_error();
    const int result = SSL_read_ex(session_.get(), to, size, &bytes);
    return result == 1 ? Outcome::moved : outcome_of(result);
  }
  const ssize_t result = ::recv(descriptor_, to, size, MSG_NOSIGNAL);
  if (result < 0) return errno == EAGAIN || errno == EINTR ? Outcome::would_block : Outcome::closed;
  bytes = static_cast<std::size_t>(result);
  return result == 0 && size > 0 ? Outcome::closed : Outcome::moved;
}

SecureSocket::Outcome SecureSocket::write(const void* from, std::size_t size, std::size_t& bytes) {
  bytes = 0;
  if (session_) {
    ERR_clear_error();
    const int result = SSL_write_ex(session_.get(), from, size, &bytes);
    return result == 1 ? Outcome::moved : outcome_of(result);
  }
  const ssize_t result = ::send(descriptor_, from, size, MSG_NOSIGNAL);
  if (result < 0) return errno == EAGAIN || errno == EINTR ? Outcome::would_block : Outcome::closed;
  bytes = static_cast<std::size_t>(result);
  return Outcome::moved;
}

std::size_t SecureSocket::pending() const {
  return session_ ? static_cast<std::size_t>(SSL_pending(session_.get())) : 0;
}

}  // namespace vigil::cluster
