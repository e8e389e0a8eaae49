// Whether a node's certificate is one that those believe who believe whom the node believes.
#pragma once

#include <string>

#include <openssl/types.h>

namespace vigil::cluster {

enum class ChainFault { none, expired, not_yet_valid, not_of_issuers };

struct ChainVerdict {
  ChainFault fault = ChainFault::none;
  /// When it expired, when it becomes valid, or OpenSSL's words for what is wrong; empty if nothing is.
  std::string reason;
};

/// Looks at a context's own certificate, with those that come with it, as the other side of a connection
/// does that has the same issuers: as a server's, and as a client's, since a node is both. The other side may
/// have other issuers, and then says another thing.
ChainVerdict check_chain(SSL_CTX* context);

}  // namespace vigil::cluster
