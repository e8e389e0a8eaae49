// A server's certificate and key, as OpenSSL uses them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/ssl/context.hpp>

#include "cluster/http/http.h"

namespace vigil::cluster {

/// Throws HttpError for a file that TlsIdentity would not take; one that has no name is not looked at.
void check_tls(const TlsFiles& files);

/// Not thread-safe.
class TlsIdentity {
 public:
  /// Throws HttpError: a file that is missing or no PEM, a key that is not the certificate's or that
  /// everybody may read. `log` may be empty.
  TlsIdentity(TlsFiles files, std::function<void(const std::string&)> log);

  /// For a new connection. Looks whether the files are others now, however they were replaced; while what
  /// they hold is of no use, what they held before goes on to be used, and the log says so.
  std::shared_ptr<boost::asio::ssl::context> current();

 private:
  std::string signature() const;
  std::shared_ptr<boost::asio::ssl::context> read() const;

  const TlsFiles files_;
  const std::function<void(const std::string&)> log_;
  std::string signature_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace vigil::cluster
