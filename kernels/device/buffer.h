// Owned memory of a device.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Uninitialised bytes on a stream's device, aligned to 64 bytes. Move-only; freed with the object. Throws
/// std::bad_alloc.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Stream& stream, std::size_t bytes);

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

  /// Makes room for at least `bytes`; contents are lost if it has to grow.
  void reserve(const Stream& stream, std::size_t bytes);

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{64}); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

}  // namespace vigil::kernels
