#include <cuda_runtime.h>

#include "tests/actors/gpu_faults.h"

namespace vigil::actors::testing {
namespace {

__global__ void trap() {
  asm volatile("trap;");
}

}  // namespace

void trap_on_gpu(int gpu) {
  cudaSetDevice(gpu);
  trap<<<1, 1>>>();
  cudaDeviceSynchronize();
  static_cast<void>(cudaGetLastError());
}

MemoryHog::MemoryHog() {
  cudaSetDevice(0);
  for (std::size_t bytes = std::size_t{16} << 30U; bytes >= (std::size_t{1} << 20U);) {
    void* memory = nullptr;
    if (cudaMalloc(&memory, bytes) == cudaSuccess) {
      held_.push_back(memory);
    } else {
      static_cast<void>(cudaGetLastError());
      bytes /= 2;
    }
  }
}

MemoryHog::~MemoryHog() {
  for (void* memory : held_) cudaFree(memory);
}

}  // namespace vigil::actors::testing
