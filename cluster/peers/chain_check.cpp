#include "cluster/peers/chain_check.h"

#include <array>
#include <memory>

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

namespace vigil::cluster {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;

template <class Print>
std::string printed(const Print& print) {
  const Bio text(BIO_new(BIO_s_mem()), &BIO_free);
  print(text.get());
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(text.get(), &data);
  return bytes > 0 ? std::string(data, static_cast<std::size_t>(bytes)) : std::string();
}

std::string in_words(const ASN1_TIME* time) {
  return printed([time](BIO* to) { ASN1_TIME_print(to, time); });
}

std::string subject_of(const X509* certificate) {
  return printed([certificate](BIO* to) {
    X509_NAME_print_ex(to, X509_get_subject_name(certificate), 0, XN_FLAG_ONELINE);
  });
}

ChainVerdict verdict_of(const X509_STORE_CTX& check, X509* own) {
  const int error = X509_STORE_CTX_get_error(&check);
  const int depth = X509_STORE_CTX_get_error_depth(&check);
  if (depth == 0 && error == X509_V_ERR_CERT_HAS_EXPIRED)
    return {ChainFault::expired, in_words(X509_get0_notAfter(own))};
  if (depth == 0 && error == X509_V_ERR_CERT_NOT_YET_VALID)
    return {ChainFault::not_yet_valid, in_words(X509_get0_notBefore(own))};
  std::string reason = X509_verify_cert_error_string(error);
  const X509* const at = X509_STORE_CTX_get_current_cert(&check);
  if (depth > 0 && at != nullptr) reason += " (" + subject_of(at) + ')';
  return {ChainFault::not_of_issuers, std::move(reason)};
}

}  // namespace

ChainVerdict check_chain(SSL_CTX* context) {
  X509* const own = SSL_CTX_get0_certificate(context);
  STACK_OF(X509)* between = nullptr;
  SSL_CTX_get0_chain_certs(context, &between);
  for (const char* const side : {"ssl_server", "ssl_client"}) {
    const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> check(X509_STORE_CTX_new(),
                                                                                &X509_STORE_CTX_free);
    if (!check || X509_STORE_CTX_init(check.get(), SSL_CTX_get_cert_store(context), own, between) != 1)
      return {ChainFault::not_of_issuers, "it cannot be checked"};
    X509_STORE_CTX_set_default(check.get(), side);
    X509_VERIFY_PARAM_set_auth_level(X509_STORE_CTX_get0_param(check.get()),
                                     SSL_CTX_get_security_level(context));
    if (X509_verify_cert(check.get()) != 1) return verdict_of(*check, own);
  }
  return {};
}

}  // namespace vigil::cluster
