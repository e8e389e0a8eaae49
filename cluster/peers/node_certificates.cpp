#include "cluster/peers/node_certificates.h"

#include <array>
#include <string_view>
#include <utility>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/stat.h>

#include "cluster/peers/chain_check.h"
#include "cluster/peers/host_check.h"
#include "cluster/sockets/file_identity.h"

namespace vigil::cluster {
namespace {

constexpr std::string_view kIssuers = "ca.crt";
constexpr std::string_view kCertificate = "tls.crt";
constexpr std::string_view kKey = "tls.key";

/// OpenSSL's own words for what went wrong last.
std::string openssl_reason() {
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
  return reason == nullptr ? "unknown reason" : reason;
}

void check_file(const std::filesystem::path& file) {
  struct stat found {};
  if (::stat(file.c_str(), &found) != 0) throw CertificateError(file.string() + ": no such file");
  if (!S_ISREG(found.st_mode)) throw CertificateError(file.string() + ": is not a regular file");
  if (file.filename() == kKey && (found.st_mode & S_IRWXO) != 0)
    throw CertificateError(file.string() + ": everybody may read this private key; chmod 600 it");
}

void check_host(const std::filesystem::path& file, X509* certificate, const std::string& host) {
  if (host.empty() || is_for(certificate, host)) return;
  throw CertificateError(
      file.string() + ": is for " + hosts_of(certificate) + ", and not for " + host +
      ", where other nodes are to reach this one (cluster.advertise; if that is empty, the "
      "host of cluster.listen)");
}

/// One that time mends.
class NotYetValid : public CertificateError {
 public:
  using CertificateError::CertificateError;
};

void check_issuers(const std::filesystem::path& file, SSL_CTX* context,
                   const std::filesystem::path& issuers) {
  const ChainVerdict verdict = check_chain(context);
  switch (verdict.fault) {
    case ChainFault::none:
      return;
    case ChainFault::expired:
      throw CertificateError(file.string() + ": has expired: it was valid until " + verdict.reason);
    case ChainFault::not_yet_valid:
      throw NotYetValid(file.string() + ": is not yet valid: it will be from " + verdict.reason + " on");
    case ChainFault::not_of_issuers:
      throw CertificateError(file.string() + ": is not of " + issuers.string() + ": " + verdict.reason);
  }
}

std::shared_ptr<SSL_CTX> read(const std::filesystem::path& folder, const std::string& host) {
  const std::filesystem::path issuers = folder / kIssuers;
  const std::filesystem::path certificate = folder / kCertificate;
  const std::filesystem::path key = folder / kKey;
  for (const auto& file : {issuers, certificate, key}) check_file(file);
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  if (!context) throw CertificateError(folder.string() + ": " + openssl_reason());
  SSL_CTX_set_min_proto_version(context.get(), TLS1_3_VERSION);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // A ticket would let a peer come back whose certificate has been replaced or has expired since.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context.get(), 0);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                      SSL_MODE_RELEASE_BUFFERS);
  // A key that wants a password has none: nobody is there to be asked.
  SSL_CTX_set_default_passwd_cb(context.get(), [](char*, int, int, void*) { return 0; });
  ERR_clear_error();
  if (SSL_CTX_load_verify_file(context.get(), issuers.c_str()) != 1)
    throw CertificateError(issuers.string() + ": no certificates in PEM: " + openssl_reason());
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate.c_str()) != 1)
    throw CertificateError(certificate.string() + ": no certificate in PEM: " + openssl_reason());
  if (SSL_CTX_use_PrivateKey_file(context.get(), key.c_str(), SSL_FILETYPE_PEM) != 1)
    throw CertificateError(key.string() + ": not the private key in PEM of " + certificate.string() + ": " +
                           openssl_reason());
  check_issuers(certificate, context.get(), issuers);
  check_host(certificate, SSL_CTX_get0_certificate(context.get()), host);
  return context;
}

}  // namespace

NodeCertificates::NodeCertificates(std::filesystem::path folder, std::function<void(const std::string&)> log,
                                   std::string host)
    : folder_(std::move(folder)),
      host_(std::move(host)),
      log_(std::move(log)),
      signature_(signature()),
      context_(read(folder_, host_)) {}

std::string NodeCertificates::signature() const {
  return file_identity(folder_ / kIssuers) + ' ' + file_identity(folder_ / kCertificate) + ' ' +
         file_identity(folder_ / kKey);
}

std::shared_ptr<SSL_CTX> NodeCertificates::current() {
  const std::lock_guard lock(mutex_);
  std::string now = signature();
  if (now == signature_) return context_;
  const auto keep = [this](const CertificateError& error) {
    if (log_ && refused_ != error.what())
      log_(std::string("peers: the certificates from before go on to be used: ") + error.what());
    refused_ = error.what();
  };
  try {
    context_ = read(folder_, host_);
    signature_ = std::move(now);
    refused_.clear();
    if (log_) log_("peers: the certificates in " + folder_.string() + " were read again");
  } catch (const NotYetValid& error) {
    // It is read again for the next connection, though nothing of it changes.
    keep(error);
  } catch (const CertificateError& error) {
    signature_ = std::move(now);
    keep(error);
  }
  return context_;
}

void NodeCertificates::look() {
  std::string now = signature();
  if (now == std::exchange(looked_, now)) current();
}

}  // namespace vigil::cluster
