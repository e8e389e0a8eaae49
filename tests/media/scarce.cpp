#include "tests/media/scarce.h"

#include <cstdlib>
#include <new>

namespace {

thread_local bool memory_is_out = false;

}  // namespace

// Those for arrays and without exceptions call these.
void* operator new(std::size_t size) {
  void* memory = memory_is_out ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace vigil::media {

NoMemory::NoMemory() {
  memory_is_out = true;
}
NoMemory::~NoMemory() {
  memory_is_out = false;
}

}  // namespace vigil::media
