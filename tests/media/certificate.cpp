#include "tests/media/certificate.h"

#include <memory>
#include <stdexcept>
#include <utility>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace vigil::media {
namespace {

void must(bool good, const char* what) {
  if (!good) throw std::runtime_error(what);
}

std::string text_of(BIO* memory) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(memory, &data);
  std::string text(data, static_cast<std::size_t>(size));
  BIO_free(memory);
  return text;
}

}  // namespace

CertificateText make_certificate(const Certificate& wanted) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> made(X509_new(), X509_free);
  must(key && made, "no key");
  X509_set_version(made.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(made.get()), 1);
  constexpr long kDay = 24L * 3600;
  X509_gmtime_adj(X509_getm_notBefore(made.get()), -30 * kDay);
  X509_gmtime_adj(X509_getm_notAfter(made.get()), wanted.expired ? -kDay : 30 * kDay);
  X509_set_pubkey(made.get(), key.get());
  X509_NAME* name = X509_get_subject_name(made.get());
  const std::string camera = "a camera";
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(camera.data()),
                             static_cast<int>(camera.size()), -1, 0);
  X509_set_issuer_name(made.get(), name);
  for (const auto& [id, value] : {std::pair(NID_basic_constraints, std::string("critical,CA:TRUE")),
                                  std::pair(NID_subject_alt_name, wanted.name)}) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
    must(extension != nullptr, "no such extension");
    X509_add_ext(made.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  must(X509_sign(made.get(), key.get(), EVP_sha256()) > 0, "cannot sign");
  BIO* certificate = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate, made.get());
  BIO* secret = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(secret, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return {text_of(certificate), text_of(secret)};
}

std::shared_ptr<SSL_CTX> server_context(const CertificateText& text) {
  std::shared_ptr<SSL_CTX> context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  BIO* memory = BIO_new_mem_buf(text.certificate.data(), static_cast<int>(text.certificate.size()));
  X509* certificate = PEM_read_bio_X509(memory, nullptr, nullptr, nullptr);
  SSL_CTX_use_certificate(context.get(), certificate);
  X509_free(certificate);
  BIO_free(memory);
  memory = BIO_new_mem_buf(text.key.data(), static_cast<int>(text.key.size()));
  EVP_PKEY* key = PEM_read_bio_PrivateKey(memory, nullptr, nullptr, nullptr);
  must(SSL_CTX_use_PrivateKey(context.get(), key) == 1, "no key");
  EVP_PKEY_free(key);
  BIO_free(memory);
  return context;
}

}  // namespace vigil::media
