// Kernels that begin while the one before them in the stream ends (programmatic dependent launch): a launch's
// latency, and what a kernel does before it needs the one before, cost nothing then. Included by .cu files
// only.
#pragma once

#include <cstddef>

#include <cuda_runtime.h>

#include "kernels/device/cuda_queue.h"

namespace vigil::kernels::cuda {

/// Lets the stream's next kernel begin, if it was launched to overlap with this one. Its blocks come when all
/// of this one's have begun and either called this or ended. Not before a wait for another GPU: blocks that
/// wait for a block that waits could keep that GPU's from coming.
__device__ __forceinline__ void let_next_begin() {
  asm volatile("griddepcontrol.launch_dependents;\n" ::: "memory");
}

/// Waits for the end of the kernels that this one was launched to overlap with; their writes are seen then,
/// by loads that are not `nc` (no __ldg). A kernel launched to overlap calls it before it reads what may come
/// from them and before it writes anything.
__device__ __forceinline__ void await_previous() {
  asm volatile("griddepcontrol.wait;\n" ::: "memory");
}

struct Grid {
  dim3 blocks;
  unsigned threads = 0;
  std::size_t shared_bytes = 0;  // of a block, beside what the kernel declares
};

/// Launches a kernel; `early`: to overlap with the stream's previous one.
template <typename... Parameters, typename... Arguments>
void launch_kernel(void (*kernel)(Parameters...), const Grid& grid, bool early, cudaStream_t stream,
                   const Arguments&... arguments) {
  constexpr std::size_t kWithoutAsking = 48 << 10;
  if (grid.shared_bytes > kWithoutAsking)
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(grid.shared_bytes)),
               "shared memory");
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = early ? 1 : 0;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
}

template <typename... Parameters, typename... Arguments>
void launch_early(void (*kernel)(Parameters...), const Grid& grid, cudaStream_t stream,
                  const Arguments&... arguments) {
  launch_kernel(kernel, grid, true, stream, arguments...);
}

}  // namespace vigil::kernels::cuda
