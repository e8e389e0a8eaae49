// Wakes a thread that waits for sockets.
#pragma once

#include <cerrno>
#include <cstdint>
#include <system_error>

#include <sys/eventfd.h>
#include <unistd.h>

namespace vigil::cluster {

/// A descriptor that is readable once somebody has rung. Thread-safe.
class Bell {
 public:
  Bell() : descriptor_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (descriptor_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
  }
  ~Bell() { ::close(descriptor_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // It fails only where it has been rung 2^64 - 2 times.
  void ring() const {
    const std::uint64_t once = 1;
    static_cast<void>(!::write(descriptor_, &once, sizeof once));
  }
  void silence() const {
    std::uint64_t rung = 0;
    static_cast<void>(!::read(descriptor_, &rung, sizeof rung));
  }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

}  // namespace vigil::cluster
