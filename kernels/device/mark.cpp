#include "kernels/device/mark.h"

#include <utility>

#if VIGIL_CUDA
#include "kernels/device/mark_cuda.h"
#endif

namespace vigil::kernels {

#if VIGIL_CUDA

void follow(const Stream& stream, const Stream& other) {
  if (stream.kind() == DeviceKind::cuda && other.kind() == DeviceKind::cuda &&
      stream.shared_queue() != other.shared_queue())
    stream.cuda_queue().wait_for(other.cuda_queue());
}

Mark::Mark(const Stream& stream)
    : mark_(stream.kind() == DeviceKind::cuda ? std::make_unique<CudaMark>(stream.cuda_queue()) : nullptr) {}

bool Mark::is_reached() const {
  return !mark_ || mark_->is_reached();
}

void Mark::wait() const {
  if (mark_) mark_->wait();
}

void Mark::hold(const Stream& stream) const {
  if (mark_ && stream.kind() == DeviceKind::cuda) mark_->hold(stream.cuda_queue());
}

#else

struct CudaMark {};

void follow(const Stream& /*stream*/, const Stream& /*other*/) {}

Mark::Mark(const Stream& /*stream*/) {}

bool Mark::is_reached() const {
  return true;
}

void Mark::wait() const {}

void Mark::hold(const Stream& /*stream*/) const {}

#endif

Mark::Mark() = default;
Mark::~Mark() = default;
Mark::Mark(Mark&&) noexcept = default;
Mark& Mark::operator=(Mark&&) noexcept = default;

}  // namespace vigil::kernels
