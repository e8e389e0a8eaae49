// Keys and certificates for tests, made anew each time.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;

namespace vigil::media {

/// What a certificate is to say.
struct Certificate {
  /// As SubjectAltName has it: "DNS:cam.local", "IP:127.0.0.1".
  std::string name;
  bool expired = false;
};

/// In PEM.
struct CertificateText {
  std::string certificate;
  std::string key;
};

/// Signed by itself, so that it is its own authority. Throws std::runtime_error.
CertificateText make_certificate(const Certificate& wanted);

/// A server's side of TLS (OpenSSL's SSL_CTX) with that certificate. Throws std::runtime_error.
std::shared_ptr<ssl_ctx_st> server_context(const CertificateText& text);

}  // namespace vigil::media
