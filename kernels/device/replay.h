// Work that is submitted again and again with other values at the same places.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// On a GPU, work that comes back is recorded as a CUDA graph and then launched as one piece; on the CPU it
/// is submitted each time. Graphs are given up when their stream's memory changes. One stream's only; not
/// thread-safe.
class Replay {
 public:
  Replay();
  ~Replay();
  Replay(Replay&&) noexcept;
  Replay& operator=(Replay&&) noexcept;

  /// Runs what `submit` submits to `stream`: operations whose kinds, shapes and addresses depend on `key`
  /// alone, as long as nothing is allocated on the stream, and that neither wait nor copy from or to the
  /// host. Where there is no room for a recording, the work is submitted. Throws what `submit` throws,
  /// DeviceError where recording fails.
  void run(Stream& stream, std::uint64_t key, const std::function<void()>& submit);

  /// Graphs that are kept.
  std::size_t recorded() const;

 private:
  struct Graphs;
  std::unique_ptr<Graphs> graphs_;
};

}  // namespace vigil::kernels
