// Certificates of nodes, as a site's own authority would issue them.
#pragma once

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

namespace vigil::cluster::testing {

/// An authority. Not thread-safe.
class Authority {
 public:
  explicit Authority(const std::string& name = "site") : key_(make_key()) {
    certificate_ = make(name, kAuthority, key_.get(), 0, 3600);
  }
  /// One for which another one vouches; its nodes believe that one.
  Authority(const std::string& name, const Authority& above)
      : above_(&above), key_(make_key()), certificate_(above.make(name, kAuthority, key_.get(), 0, 3600)) {}

  /// Writes `ca.crt`, `tls.crt` and `tls.key` of a node, whose names are as OpenSSL writes them
  /// ("DNS:a,IP:127.0.0.1"), valid from and until so many seconds from now, for what `usage` says
  /// ("serverAuth"; empty: for all).
  void issue(const std::filesystem::path& folder, const std::string& names, long from = -60,
             long until = 3600, const std::string& usage = "") const {
    std::filesystem::create_directories(folder);
    const Key key = make_key();
    const Certificate certificate = make("node", names, key.get(), from, until, usage);
    believe(folder, {above_ == nullptr ? this : above_});
    write(folder / "tls.crt", [&](std::FILE* file) {
      PEM_write_X509(file, certificate.get());
      if (above_ != nullptr) PEM_write_X509(file, certificate_.get());
    });
    write(folder / "tls.key", [&](std::FILE* file) {
      PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    });
    std::filesystem::permissions(folder / "tls.key", std::filesystem::perms(0600));
  }

  /// Writes `ca.crt`: of these, in their order.
  static void believe(const std::filesystem::path& folder,
                      std::initializer_list<const Authority*> authorities) {
    write(folder / "ca.crt", [&](std::FILE* file) {
      for (const Authority* each : authorities) PEM_write_X509(file, each->certificate_.get());
    });
  }

 private:
  /// In place of a node's names.
  static constexpr const char* kAuthority = "";
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static Key make_key() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

  /// Issued by this authority, or by itself while that has no certificate.
  Certificate make(const std::string& subject, const std::string& names, EVP_PKEY* key, long from, long until,
                   const std::string& usage = "") const {
    Certificate made(X509_new(), &X509_free);
    X509_set_version(made.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), until);
    X509_set_pubkey(made.get(), key);
    X509_NAME* const name = X509_get_subject_name(made.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(subject.c_str()), -1, -1, 0);
    const bool is_authority = names == kAuthority;
    X509_set_issuer_name(made.get(), certificate_ ? X509_get_subject_name(certificate_.get()) : name);
    add(made.get(), is_authority ? NID_basic_constraints : NID_subject_alt_name,
        is_authority ? "critical,CA:TRUE" : names);
    if (!usage.empty()) add(made.get(), NID_ext_key_usage, usage);
    X509_sign(made.get(), key_.get(), EVP_sha256());
    return made;
  }

  static void add(X509* certificate, int what, const std::string& value) {
    X509_EXTENSION* const extension = X509V3_EXT_conf_nid(nullptr, nullptr, what, value.c_str());
    if (extension == nullptr) throw std::runtime_error("no such names: " + value);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  template <class Write>
  static void write(const std::filesystem::path& path, const Write& to) {
    const std::unique_ptr<std::FILE, decltype(&std::fclose)> file(std::fopen(path.c_str(), "w"),
                                                                  &std::fclose);
    to(file.get());
  }

  mutable long serial_ = 0;
  const Authority* above_ = nullptr;
  Key key_;
  /// None while it makes its own.
  Certificate certificate_{nullptr, &X509_free};
};

}  // namespace vigil::cluster::testing
