// What goes wrong on a GPU, on purpose.
#pragma once

#include <vector>

namespace vigil::actors::testing {

/// A kernel of this process ends by a trap on this GPU: a sticky error. Nothing works there afterwards.
void trap_on_gpu(int gpu);

/// Holds nearly all of the first GPU's memory that is free.
class MemoryHog {
 public:
  MemoryHog();
  ~MemoryHog();
  MemoryHog(const MemoryHog&) = delete;
  MemoryHog& operator=(const MemoryHog&) = delete;

 private:
  std::vector<void*> held_;
};

}  // namespace vigil::actors::testing
