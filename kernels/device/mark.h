// A place in a stream's order, for whoever has to know when it is reached: another stream, or the host.
#pragma once

#include <memory>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// What is submitted to `stream` from here on begins when all that was submitted to `other` is done; the host
/// waits for nothing. Nothing on the CPU.
void follow(const Stream& stream, const Stream& other);

/// Known to CUDA implementations only (device/mark_cuda.cpp).
struct CudaMark;

/// All that was submitted to a stream so far. Move-only; may be asked on any thread, by one at a time.
class Mark {
 public:
  /// Of nothing: reached.
  Mark();
  /// Throws DeviceError.
  explicit Mark(const Stream& stream);
  ~Mark();
  Mark(Mark&&) noexcept;
  Mark& operator=(Mark&&) noexcept;
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  /// Whether it is done. Throws DeviceError for what went wrong on the GPU since.
  bool is_reached() const;
  /// Sleeps until it is done. Throws as `is_reached`.
  void wait() const;
  /// What is submitted to `stream` from here on begins when it is done; the host waits for nothing. Nothing
  /// on the CPU. Throws DeviceError.
  void hold(const Stream& stream) const;

 private:
  /// Null on the CPU.
  std::unique_ptr<CudaMark> mark_;
};

}  // namespace vigil::kernels
