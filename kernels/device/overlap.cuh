// Kernels that begin while the one before them in the stream ends (programmatic dependent launch): a launch's
// latency, and what a kernel does before it needs the one before, cost nothing then. Included by .cu files
// only.
#pragma once

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

/// Launches a kernel to overlap with the stream's previous one.
template <typename... Parameters, typename... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, cudaStream_t stream,
                  const Arguments&... arguments) {
  cudaLaunchAttribute overlap{};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = 1;
  check_cuda(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), "launch");
}

}  // namespace vigil::kernels::cuda
