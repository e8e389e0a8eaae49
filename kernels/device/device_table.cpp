#include "kernels/device/device_table.h"

#include <algorithm>
#include <bit>

namespace vigil::kernels {

void DeviceTable::send(const Stream& stream) {
  // Any type's alignment, and arrays that begin in memory transactions of their own.
  constexpr std::size_t kLeast = 64;
  rooms_.resize(std::max(rooms_.size(), values_.size()));
  std::size_t end = 0;
  for (std::size_t i = 0; i < rooms_.size(); ++i) {
    const std::size_t bytes = i < values_.size() ? values_[i].size() : 0;
    rooms_[i] = {end, std::max({rooms_[i].bytes, kLeast, std::bit_ceil(bytes)})};
    end += rooms_[i].bytes;
  }
  memory_.reserve(stream, end);
  staged_.resize(end);
  for (std::size_t i = 0; i < values_.size(); ++i)
    std::copy(values_[i].begin(), values_[i].end(),
              staged_.begin() + static_cast<std::ptrdiff_t>(rooms_[i].begin));
  upload(stream, memory_.data(), staged_.data(), end);
}

}  // namespace vigil::kernels
