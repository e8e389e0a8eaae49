#include "cluster/peers/host_check.h"

#include <array>
#include <memory>
#include <string_view>

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace vigil::cluster {
namespace {

/// A wildcard stands for a whole part of a name: *.example, and not n*.example.
constexpr unsigned kHowNamesAreCompared = X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS;

bool is_address(const std::string& host) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(AF_INET, host.c_str(), bytes.data()) == 1 ||
         ::inet_pton(AF_INET6, host.c_str(), bytes.data()) == 1;
}

std::string_view text_of(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<std::size_t>(ASN1_STRING_length(text))};
}

/// Empty if it is neither a name nor an address.
std::string text_of(const GENERAL_NAME& name) {
  if (name.type == GEN_DNS) return std::string(text_of(name.d.dNSName));
  if (name.type != GEN_IPADD) return {};
  const std::string_view bytes = text_of(name.d.iPAddress);
  const int family = bytes.size() == sizeof(in6_addr) ? AF_INET6 : AF_INET;
  if (bytes.size() != sizeof(in6_addr) && bytes.size() != sizeof(in_addr)) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(family, bytes.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace

void expect_host(SSL* session, const std::string& host) {
  SSL_set_hostflags(session, kHowNamesAreCompared);
  if (is_address(host)) {
    X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session), host.c_str());
  } else {
    SSL_set1_host(session, host.c_str());
    SSL_set_tlsext_host_name(session, host.c_str());
  }
}

bool is_for(X509* certificate, const std::string& host) {
  if (is_address(host)) return X509_check_ip_asc(certificate, host.c_str(), 0) == 1;
  return X509_check_host(certificate, host.data(), host.size(), kHowNamesAreCompared, nullptr) == 1;
}

std::string hosts_of(X509* certificate) {
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)),
      &GENERAL_NAMES_free);
  std::string hosts;
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const std::string host = text_of(*sk_GENERAL_NAME_value(names.get(), i));
    if (!host.empty()) hosts += (hosts.empty() ? "" : ", ") + host;
  }
  return hosts.empty() ? "no name and no address" : hosts;
}

}  // namespace vigil::cluster
