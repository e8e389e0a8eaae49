#include "kernels/device/buffer.h"

#include <algorithm>
#include <stdexcept>

namespace vigil::kernels {

Buffer::Buffer(const Stream& stream, std::size_t bytes) : bytes_(bytes) {
  if (stream.kind() != DeviceKind::cpu)
    throw std::invalid_argument("buffers exist on the CPU only in this build");
  data_.reset(
      static_cast<std::byte*>(::operator new (std::max<std::size_t>(bytes, 1), std::align_val_t{64})));
}

void Buffer::reserve(const Stream& stream, std::size_t bytes) {
  if (bytes > bytes_) *this = Buffer(stream, bytes);
}

}  // namespace vigil::kernels
