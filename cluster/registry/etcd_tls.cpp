#include "cluster/registry/etcd_tls.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/descriptor.h"

namespace vigil::cluster {
namespace {

using std::chrono::steady_clock;

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Context = std::unique_ptr<SSL_CTX, Free<SSL_CTX_free>>;
using Session = std::unique_ptr<SSL, Free<SSL_free>>;
using Bio = std::unique_ptr<BIO, Free<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

constexpr auto kPatience = std::chrono::milliseconds(300);

std::string read(const std::filesystem::path& path, bool secret) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) throw RegistryError(path.string() + ": no such file");
  // Another could be waited for in vain.
  if (!S_ISREG(found.st_mode)) throw RegistryError(path.string() + ": is not a regular file");
  if (secret && (found.st_mode & S_IRWXO) != 0)
    throw RegistryError(path.string() + ": everybody may read this private key; chmod 600 it");
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

Bio reader(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// A key that wants a password has none: nobody is there to be asked.
int no_password(char*, int, int, void*) {
  return 0;
}

Certificate certificate(const std::string& pem) {
  Certificate found(PEM_read_bio_X509(reader(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return found;
}

Key key(const std::string& pem) {
  Key found(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_password, nullptr));
  ERR_clear_error();
  return found;
}

EtcdTls::Material material(const EtcdTlsFiles& files) {
  EtcdTls::Material held{.ca = read(files.ca_file, false), .cert = {}, .key = {}};
  if (!certificate(held.ca)) throw RegistryError(files.ca_file.string() + ": no certificates in PEM");
  if (files.cert_file.empty() != files.key_file.empty())
    throw RegistryError("registry: a client's certificate and its private key come together");
  if (files.cert_file.empty()) return held;
  held.cert = read(files.cert_file, false);
  held.key = read(files.key_file, true);
  const Certificate own = certificate(held.cert);
  if (!own) throw RegistryError(files.cert_file.string() + ": no certificate in PEM");
  const Key secret = key(held.key);
  if (!secret || X509_check_private_key(own.get(), secret.get()) != 1) {
    ERR_clear_error();
    throw RegistryError(files.key_file.string() + ": not the private key in PEM of " +
                        files.cert_file.string());
  }
  return held;
}

/// HOST:PORT with the host in numbers.
base::Descriptor connect_to(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return base::Descriptor();
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  std::uint16_t number = 0;
  std::from_chars(address.data() + colon + 1, address.data() + address.size(), number);
  const std::uint16_t port = htons(number);
  sockaddr_in six_or_four{};
  sockaddr_in6 six{};
  const bool four = ::inet_pton(AF_INET, host.c_str(), &six_or_four.sin_addr) == 1;
  if (!four && ::inet_pton(AF_INET6, host.c_str(), &six.sin6_addr) != 1) return base::Descriptor();
  six_or_four.sin_family = AF_INET;
  six_or_four.sin_port = port;
  six.sin6_family = AF_INET6;
  six.sin6_port = port;
  const int descriptor = ::socket(four ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (descriptor < 0) return base::Descriptor();
  const auto* to =
      four ? reinterpret_cast<const sockaddr*>(&six_or_four) : reinterpret_cast<const sockaddr*>(&six);
  static_cast<void>(::connect(descriptor, to, four ? sizeof six_or_four : sizeof six));
  return base::Descriptor(descriptor);
}

/// Calls `step` until it gives something else than "wants to read" or "wants to write", or until the time is
/// over.
template <class Step>
int drive(SSL* session, int socket, steady_clock::time_point until, Step step) {
  for (;;) {
    ERR_clear_error();
    const int error = SSL_get_error(session, step());
    if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return error;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - steady_clock::now()).count();
    pollfd ready{socket, static_cast<short>(error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT), 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return error;
  }
}

std::string last_reason() {
  const unsigned long error = ERR_peek_last_error();
  const char* reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  ERR_clear_error();
  return reason == nullptr ? "" : reason;
}

}  // namespace

EtcdTls::EtcdTls(EtcdTlsFiles files, std::function<void(const std::string&)> log)
    : files_(std::move(files)), log_(std::move(log)), material_(material(files_)) {}

const EtcdTls::Material& EtcdTls::current() {
  try {
    Material now = material(files_);
    if (now == material_) return material_;
    material_ = std::move(now);
    complaint_.clear();
    if (log_) log_("registry: the certificates were read again");
  } catch (const RegistryError& error) {
    if (log_ && std::exchange(complaint_, error.what()) != error.what())
      log_(std::string("registry: the certificates from before go on to be used: ") + error.what());
  }
  return material_;
}

std::optional<std::string> EtcdTls::why_not(const std::string& address, const std::string& endpoint) const {
  const auto until = steady_clock::now() + kPatience;
  const base::Descriptor socket = connect_to(address);
  const Context context(SSL_CTX_new(TLS_client_method()));
  if (!socket || !context) return std::nullopt;
  const Bio authorities = reader(material_.ca);
  while (const Certificate authority{PEM_read_bio_X509(authorities.get(), nullptr, no_password, nullptr)})
    X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
  const Certificate own = certificate(material_.cert);
  if (const Key secret = key(material_.key); own && secret) {
    SSL_CTX_use_certificate(context.get(), own.get());
    SSL_CTX_use_PrivateKey(context.get(), secret.get());
  }
  const Session session(SSL_new(context.get()));
  if (!session) return std::nullopt;
  const unsigned char http2[] = {2, 'h', '2'};
  SSL_set_alpn_protos(session.get(), http2, sizeof http2);
  std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session.get()), host.c_str()) != 1) {
    SSL_set_tlsext_host_name(session.get(), host.c_str());
    SSL_set1_host(session.get(), host.c_str());
  }
  SSL_set_fd(session.get(), socket.number());
  // What is wrong with the server's certificate is found, and does not end the handshake.
  SSL_set_verify(session.get(), SSL_VERIFY_NONE, nullptr);
  const int shaken = drive(session.get(), socket.number(), until, [&] { return SSL_connect(session.get()); });
  if (const long wrong = SSL_get_verify_result(session.get()); wrong != X509_V_OK)
    return std::string("the server's certificate: ") + X509_verify_cert_error_string(wrong);
  // What a server thinks of a client's certificate comes after the handshake.
  char byte = 0;
  const int heard = shaken != SSL_ERROR_NONE ? shaken : drive(session.get(), socket.number(), until, [&] {
    return SSL_read(session.get(), &byte, sizeof byte);
  });
  if (heard != SSL_ERROR_SSL) return std::nullopt;
  const std::string reason = last_reason();
  if (reason.find("alert") == std::string::npos) return "TLS: " + reason;
  if (!own) return "the server wants a client's certificate: " + reason;
  if (X509_cmp_current_time(X509_get0_notAfter(own.get())) < 0)
    return files_.cert_file.string() + ": certificate has expired: " + reason;
  return "the server does not take the client's certificate " + files_.cert_file.string() + ": " + reason;
}

}  // namespace vigil::cluster
