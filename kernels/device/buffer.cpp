#include "kernels/device/buffer.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/device/dispatch.h"

#if VIGIL_CUDA
#include "kernels/device/cuda_queue.h"
#endif

namespace vigil::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

namespace cpu {

void* allocate(const Stream& /*stream*/, std::size_t bytes) {
  return ::operator new(bytes, kAlignment);
}

void move(const Stream& /*stream*/, void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void move_in(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  move(stream, to, from, bytes);
}

void move_out(const Stream& stream, void* to, const void* from, std::size_t bytes, Wait /*wait*/) {
  move(stream, to, from, bytes);
}

}  // namespace cpu

#if VIGIL_CUDA
namespace cuda {

void* allocate(const Stream& stream, std::size_t bytes) {
  return stream.cuda_queue().allocate(bytes);
}

void move(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  stream.cuda_queue().copy(to, from, bytes);
}

void move_in(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  stream.cuda_queue().upload(to, from, bytes);
}

void move_out(const Stream& stream, void* to, const void* from, std::size_t bytes, Wait wait) {
  stream.cuda_queue().download(to, from, bytes, wait);
}

}  // namespace cuda
#endif

}  // namespace

Buffer::Buffer(const Stream& stream, std::size_t bytes) : bytes_(bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  data_ = {static_cast<std::byte*>(VIGIL_ON_DEVICE(stream, allocate(stream, size))),
           Free{stream.shared_queue()}};
}

void Buffer::Free::operator()(std::byte* memory) const {
#if VIGIL_CUDA
  if (queue) return queue->free(memory);
#endif
  ::operator delete(memory, kAlignment);
}

void Buffer::reserve(const Stream& stream, std::size_t bytes) {
  if (bytes <= bytes_) return;
  *this = {};  // first, so that the device need not hold both
  *this = Buffer(stream, bytes);
}

void upload(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) VIGIL_ON_DEVICE(stream, move_in(stream, to, from, bytes));
}

void download(const Stream& stream, void* to, const void* from, std::size_t bytes, Wait wait) {
  if (bytes == 0) return stream.synchronize(wait);
  VIGIL_ON_DEVICE(stream, move_out(stream, to, from, bytes, wait));
}

void copy(const Stream& stream, void* to, const void* from, std::size_t bytes) {
  if (bytes > 0) VIGIL_ON_DEVICE(stream, move(stream, to, from, bytes));
}

void copy_across([[maybe_unused]] const Stream& from_stream, const void* from, const Stream& to_stream,
                 void* to, std::size_t bytes) {
#if VIGIL_CUDA
  const bool queues = from_stream.kind() == DeviceKind::cuda && to_stream.kind() == DeviceKind::cuda;
  if (queues) to_stream.cuda_queue().wait_for(from_stream.cuda_queue());
#endif
  copy(to_stream, to, from, bytes);
#if VIGIL_CUDA
  if (queues) from_stream.cuda_queue().wait_for(to_stream.cuda_queue());
#endif
}

}  // namespace vigil::kernels
