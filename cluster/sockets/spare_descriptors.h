// Descriptors that are kept so that they can be let go: ZeroMQ ends the process when it has none for a
// connection on a Unix socket (src/ipc_listener.cpp), so some are set free for the moment in which it needs
// one.
#pragma once

#include <cstddef>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace vigil::cluster {

/// Not thread-safe.
class SpareDescriptors {
 public:
  ~SpareDescriptors() { release(); }
  SpareDescriptors() = default;
  SpareDescriptors(const SpareDescriptors&) = delete;
  SpareDescriptors& operator=(const SpareDescriptors&) = delete;

  /// Whether all of them are there, now.
  bool hold() {
    while (held_.size() < kCount) {
      const int descriptor = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (descriptor < 0) return false;
      held_.push_back(descriptor);
    }
    return true;
  }
  void release() {
    for (const int descriptor : held_) ::close(descriptor);
    held_.clear();
  }

 private:
  static constexpr std::size_t kCount = 16;

  std::vector<int> held_;
};

}  // namespace vigil::cluster
