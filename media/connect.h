// Servers' addresses, and connections to them. Private to media/.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <sys/socket.h>

#include "base/descriptor.h"
#include "media/interrupt.h"

namespace vigil::media {

/// Where to connect to.
struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

struct Resolved {
  /// In the order in which they are to be tried.
  std::vector<Address> addresses;
  /// Of getaddrinfo, and what stands behind EAI_SYSTEM.
  int error = 0;
  int system_error = 0;
};

/// The addresses of a server with TCP; `flags` are getaddrinfo's. Blocks until the system's resolver answers
/// or gives up (tens of seconds), and nothing interrupts that. Thread-safe.
Resolved resolve(const std::string& host, const std::string& port, int flags);

/// A socket, non-blocking, that is connected to the first of these addresses that takes the connection. An
/// address is tried 250 ms after the one before it, or as soon as all before it have failed; whoever has not
/// answered by then still may (RFC 8305 in its simplest form). Throws std::runtime_error with a reason when
/// all have failed, or when `interrupt` expires, which is looked at some times a second.
base::Descriptor connected(std::span<const Address> addresses, Interrupt& interrupt);

}  // namespace vigil::media
