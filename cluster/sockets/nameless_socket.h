// A way into a ZeroMQ socket that nobody else on the machine can find. ZeroMQ ends the process when it has no
// descriptor left for a connection on a Unix socket, so that whoever could connect could end it.
#pragma once

#include <string>

#include <zmq.hpp>

#include "base/descriptor.h"

namespace vigil::cluster {

/// Lets a ZeroMQ socket listen on a Unix socket whose name is gone again: what is left is a descriptor of
/// this process. Not thread-safe.
class NamelessSocket {
 public:
  /// Binds `socket`. The name is made for a moment in the folder for temporary files, or else in /dev/shm.
  /// Throws std::system_error if neither can hold a socket.
  explicit NamelessSocket(zmq::socket_t& socket);

  /// Where to connect, from this process, as long as this lives.
  std::string path() const { return "/proc/self/fd/" + std::to_string(found_.number()); }

 private:
  base::Descriptor found_;
};

}  // namespace vigil::cluster
