// Owned memory of a device, and what moves bytes into it and out of it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Uninitialised bytes on a stream's device, aligned to 64 bytes at least. Move-only; freed with the object.
/// On a GPU, memory comes and goes in the order of its stream: whoever uses it on another stream synchronises
/// with this one before, and with the other one before the buffer is freed. Throws std::bad_alloc
/// (OutOfDeviceMemory on a GPU).
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
    /// Null on the CPU.
    std::shared_ptr<CudaQueue> queue;
    void operator()(std::byte* memory) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t bytes_ = 0;
};

/// Copies bytes from the host to the stream's device, in the stream's order. `from` may change afterwards.
void upload(const Stream& stream, void* to, const void* from, std::size_t bytes);

/// Copies bytes from the stream's device to the host and waits for them, hence for all that was submitted.
void download(const Stream& stream, void* to, const void* from, std::size_t bytes, Wait wait = Wait::spin);

/// Copies bytes within the stream's device, or from another GPU, where what is read has to be there already;
/// the ranges do not overlap.
void copy(const Stream& stream, void* to, const void* from, std::size_t bytes);

/// Copies bytes from one stream's device to another's: after all that was submitted to either, and before
/// what either is given later. Nobody waits for it on the host.
void copy_across(const Stream& from_stream, const void* from, const Stream& to_stream, void* to,
                 std::size_t bytes);

/// Host values where an operation on the stream's device can read them.
template <typename T>
class DeviceArray {
 public:
  DeviceArray() = default;
  DeviceArray(const Stream& stream, std::span<const T> values) { assign(stream, values); }

  void assign(const Stream& stream, std::span<const T> values) {
    memory_.reserve(stream, values.size_bytes());
    upload(stream, memory_.data(), values.data(), values.size_bytes());
  }
  const T* data() const { return memory_.as<T>(); }

 private:
  Buffer memory_;
};

}  // namespace vigil::kernels
