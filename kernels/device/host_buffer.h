// Memory of the host that a device can copy from and to by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Bytes of the host, shared by whoever uses them; for a GPU page-locked, so that copies run beside the
/// host's work and at the bus's rate, and kernels can read and write them.
using HostBytes = std::shared_ptr<std::byte[]>;

/// Gives them out, and keeps those that come back for the next ones: to lock pages takes longer than to copy
/// them. Aligned to 64 bytes at least. Thread-safe; what it has given out may outlive it.
class HostMemory {
 public:
  /// Of the kind that this stream's device wants; `most`: bytes that may be out at once, rounded up as they
  /// are. Those that wait to be given out again are within that, too.
  HostMemory(const Stream& stream, std::uint64_t most);

  /// Null where there is no room. Throws std::bad_alloc, DeviceError.
  HostBytes take(std::size_t bytes);

  /// Bytes that are out.
  std::uint64_t used() const;
  /// What `bytes` count for: an eighth more at most, and 4 KiB at least.
  static std::size_t rounded(std::size_t bytes);

 private:
  struct Shelf;
  std::shared_ptr<Shelf> shelf_;
};

}  // namespace vigil::kernels
