#include "cluster/http/tls.h"

#include <utility>

#include <openssl/ssl.h>
#include <sys/stat.h>

#include "cluster/sockets/file_identity.h"

namespace vigil::cluster {
namespace {

namespace ssl = boost::asio::ssl;

/// Who may do what with a file, which has to be a regular one: another could be waited for in vain.
mode_t mode_of(const std::filesystem::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0) throw HttpError(path.string() + ": no such file");
  if (!S_ISREG(found.st_mode)) throw HttpError(path.string() + ": is not a regular file");
  return found.st_mode;
}

void use_certificate(ssl::context& context, const std::filesystem::path& file) {
  mode_of(file);
  boost::system::error_code error;
  context.use_certificate_chain_file(file.string(), error);
  if (error) throw HttpError(file.string() + ": no certificate in PEM: " + error.message());
}

void use_key(ssl::context& context, const std::filesystem::path& file,
             const std::filesystem::path& certificate) {
  if ((mode_of(file) & S_IRWXO) != 0)
    throw HttpError(file.string() + ": everybody may read this private key; chmod 600 it");
  boost::system::error_code error;
  // A key that wants a password has none: nobody is there to be asked.
  context.set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); },
                                error);
  context.use_private_key_file(file.string(), ssl::context::pem, error);
  if (!error) return;
  throw HttpError(file.string() +
                  (certificate.empty() ? std::string(": no private key in PEM")
                                       : ": not the private key in PEM of " + certificate.string()) +
                  ": " + error.message());
}

}  // namespace

TlsIdentity::TlsIdentity(TlsFiles files, std::function<void(const std::string&)> log)
    : files_(std::move(files)), log_(std::move(log)), signature_(signature()), context_(read()) {}

std::string TlsIdentity::signature() const {
  return file_identity(files_.cert_file) + ' ' + file_identity(files_.key_file);
}

std::shared_ptr<ssl::context> TlsIdentity::read() const {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  SSL_CTX_set_options(context->native_handle(), SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_RENEGOTIATION);
  // A connection that waits keeps no buffers.
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  use_certificate(*context, files_.cert_file);
  use_key(*context, files_.key_file, files_.cert_file);
  return context;
}

void check_tls(const TlsFiles& files) {
  ssl::context context(ssl::context::tls_server);
  if (!files.cert_file.empty()) use_certificate(context, files.cert_file);
  if (!files.key_file.empty()) use_key(context, files.key_file, files.cert_file);
}

std::shared_ptr<ssl::context> TlsIdentity::current() {
  std::string now = signature();
  if (now == signature_) return context_;
  signature_ = std::move(now);
  try {
    context_ = read();
    if (log_) log_("http: the certificate was read again");
  } catch (const HttpError& error) {
    if (log_) log_(std::string("http: the certificate from before goes on to be used: ") + error.what());
  }
  return context_;
}

}  // namespace vigil::cluster
