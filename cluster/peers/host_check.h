// Which names and addresses a certificate is for.
#pragma once

#include <string>

#include <openssl/types.h>

namespace vigil::cluster {

/// The name or address that the certificate of a session's other side has to be for.
void expect_host(SSL* session, const std::string& host);

/// Whether whoever expects this host believes the certificate as far as that goes.
bool is_for(X509* certificate, const std::string& host);

/// What it is for, as people are shown it: "a.example, 10.0.0.7".
std::string hosts_of(X509* certificate);

}  // namespace vigil::cluster
