#include "cluster/sockets/nameless_socket.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include <fcntl.h>

namespace vigil::cluster {
namespace {

namespace fs = std::filesystem;

/// The bound socket, found by its name; none, and errno, if this folder cannot hold one.
base::Descriptor bind_in(const fs::path& where, zmq::socket_t& socket) {
  std::string folder = (where / "vigil-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return base::Descriptor();
  const std::string name = folder + "/gate";
  base::Descriptor found;
  if (zmq_bind(socket.handle(), ("ipc://" + name).c_str()) == 0)
    found = base::Descriptor(::open(name.c_str(), O_PATH | O_CLOEXEC));
  const int reason = errno;
  std::error_code none;
  fs::remove_all(folder, none);
  errno = reason;
  return found;
}

}  // namespace

NamelessSocket::NamelessSocket(zmq::socket_t& socket) {
  std::error_code none;
  for (const fs::path& where : std::array{fs::temp_directory_path(none), fs::path("/dev/shm")}) {
    if (where.empty()) continue;
    found_ = bind_in(where, socket);
    if (found_) return;
  }
  throw std::system_error(errno, std::generic_category(), "no folder for temporary files can hold a socket");
}

}  // namespace vigil::cluster
