// RTSP over TLS with a server that is verified: FFmpeg's own client (5.1) takes any certificate, and has
// no option to ask for more.
#pragma once

#include <string>
#include <thread>

#include "base/descriptor.h"
#include "media/interrupt.h"
#include "media/media.h"

namespace vigil::media {

/// A connection with TLS to a server, and a port of this machine (127.0.0.1) that leads into it and speaks
/// without. The port takes one client, the first one; whoever else of this machine were to come first would
/// find a server that still asks it for its password. A thread carries the bytes until one side closes.
class TlsTunnel {
 public:
  /// Connects, and verifies the server's certificate, its name or address and its time of validity, unless
  /// `tls` goes without. Throws std::runtime_error with the reason, also when `interrupt` expires, which it
  /// looks at some times a second; but resolving the name cannot be interrupted, and takes as long as the
  /// system's resolver does.
  TlsTunnel(const std::string& host, int port, const Tls& tls, Interrupt& interrupt);
  ~TlsTunnel();
  TlsTunnel(const TlsTunnel&) = delete;
  TlsTunnel& operator=(const TlsTunnel&) = delete;

  int port() const { return port_; }

 private:
  int port_ = 0;
  /// Wakes the thread, which then ends.
  base::Descriptor wake_;
  std::thread thread_;
};

}  // namespace vigil::media
