#include "kernels/device/host_buffer.h"

#include <bit>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#if VIGIL_CUDA
#include "kernels/device/cuda_queue.h"
#endif

namespace vigil::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::size_t kLeast = 4096;

}  // namespace

struct HostMemory::Shelf {
  bool is_pinned = false;
  std::uint64_t most = 0;
  std::mutex mutex;
  std::uint64_t used = 0, waiting = 0;
  /// By size.
  std::map<std::size_t, std::vector<std::byte*>> free;

  ~Shelf() {
    for (auto& [size, blocks] : free)
      for (std::byte* block : blocks) release(block);
  }

  std::byte* allocate(std::size_t size) const {
#if VIGIL_CUDA
    if (is_pinned) {
      void* memory = nullptr;
      check_cuda(cudaHostAlloc(&memory, size, cudaHostAllocPortable | cudaHostAllocMapped), "pinned memory");
      return static_cast<std::byte*>(memory);
    }
#endif
    return static_cast<std::byte*>(::operator new(size, kAlignment));
  }
  void release(std::byte* block) const {
#if VIGIL_CUDA
    if (is_pinned) {
      cudaFreeHost(block);
      return;
    }
#endif
    ::operator delete(block, kAlignment);
  }
  /// Gives back to the system what waits in other sizes, the largest first. Under the lock.
  void make_room(std::size_t size) {
    while (used + waiting + size > most && waiting > 0) {
      const auto last = std::prev(free.end());
      release(last->second.back());
      last->second.pop_back();
      waiting -= last->first;
      if (last->second.empty()) free.erase(last);
    }
  }
  void give_back(std::byte* block, std::size_t size) {
    const std::lock_guard lock(mutex);
    used -= size;
    if (used + waiting + size > most) return release(block);
    free[size].push_back(block);
    waiting += size;
  }
};

HostMemory::HostMemory(const Stream& stream, std::uint64_t most) : shelf_(std::make_shared<Shelf>()) {
  shelf_->is_pinned = stream.kind() == DeviceKind::cuda;
  shelf_->most = most;
}

std::size_t HostMemory::rounded(std::size_t bytes) {
  if (bytes <= kLeast) return kLeast;
  // Sizes with three bits behind the highest.
  const std::size_t step = std::bit_ceil(bytes) / 16;
  return (bytes + step - 1) / step * step;
}

std::uint64_t HostMemory::used() const {
  const std::lock_guard lock(shelf_->mutex);
  return shelf_->used;
}

HostBytes HostMemory::take(std::size_t bytes) {
  const std::size_t size = rounded(bytes);
  std::byte* block = nullptr;
  {
    const std::lock_guard lock(shelf_->mutex);
    if (shelf_->used + size > shelf_->most) return nullptr;
    const auto waiting = shelf_->free.find(size);
    if (waiting != shelf_->free.end()) {
      block = waiting->second.back();
      waiting->second.pop_back();
      if (waiting->second.empty()) shelf_->free.erase(waiting);
      shelf_->waiting -= size;
    } else {
      shelf_->make_room(size);
    }
    shelf_->used += size;
  }
  try {
    if (block == nullptr) block = shelf_->allocate(size);
  } catch (...) {
    const std::lock_guard lock(shelf_->mutex);
    shelf_->used -= size;
    throw;
  }
  return {block, [shelf = shelf_, size](std::byte* of) { shelf->give_back(of, size); }};
}

}  // namespace vigil::kernels
