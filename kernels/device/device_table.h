// Several arrays of host values that go to a device in one copy and keep their places there.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/device/buffer.h"

namespace vigil::kernels {

/// Each array keeps room for a power of two of bytes, so that addresses change only when one outgrows its
/// room: what was recorded (device/replay.h) then finds new values at old places. Not thread-safe.
class DeviceTable {
 public:
  /// Begins anew, with the arrays in the same order as the last time; the rooms stay.
  void clear() { values_.clear(); }

  /// `values` has to live until `send`.
  template <typename T>
  void add(std::span<const T> values) {
    values_.push_back(std::as_bytes(values));
  }

  /// Copies all that was added since `clear`, in the stream's order.
  void send(const Stream& stream);

  /// Array `i` of those that were added, on the stream's device, since `send`.
  template <typename T>
  const T* at(std::size_t i) const {
    return reinterpret_cast<const T*>(memory_.data() + rooms_[i].begin);
  }

 private:
  struct Room {
    std::size_t begin = 0, bytes = 0;
  };
  std::vector<std::span<const std::byte>> values_;
  std::vector<Room> rooms_;
  std::vector<std::byte> staged_;
  Buffer memory_;
};

}  // namespace vigil::kernels
