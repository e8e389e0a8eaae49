// The certificate by which a node proves to the others who it is, and whom it believes.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include <openssl/types.h>

namespace vigil::cluster {

/// A folder of certificates that cannot be used: one line with the file and the reason.
class CertificateError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A folder with three files in PEM, called as Kubernetes calls those of a TLS secret: `ca.crt`, whom to
/// believe; `tls.crt`, this node's certificate and those between it and the former; `tls.key`, its private
/// key, which not everybody may read. Thread-safe.
class NodeCertificates {
 public:
  /// Throws CertificateError. `log` gets a line when the files were read again, or could not be; may be
  /// empty. `host`: the name or address under which others reach this node: a certificate that is not for it
  /// is of no use, since they would all refuse it; empty: it may be for any. So is one for which `ca.crt`
  /// does not vouch, and one that has expired or is not valid yet.
  NodeCertificates(std::filesystem::path folder, std::function<void(const std::string&)> log,
                   std::string host = {});

  /// For a new connection, of either side: TLS 1.3, and the other side has to show a certificate, too. Looks
  /// whether the files are others now, however they were replaced; while what they hold is of no use, what
  /// they held before goes on to be used.
  std::shared_ptr<SSL_CTX> current();

  /// Looks whether they are others now, too, once they have been left alone between two calls. By one thread.
  void look();

 private:
  std::string signature() const;

  const std::filesystem::path folder_;
  const std::string host_;
  const std::function<void(const std::string&)> log_;
  std::mutex mutex_;
  /// Of the files as they were when they were read last.
  std::string signature_;
  /// Of the last look.
  std::string looked_;
  /// What was wrong with them then; empty if nothing was.
  std::string refused_;
  std::shared_ptr<SSL_CTX> context_;
};

}  // namespace vigil::cluster
