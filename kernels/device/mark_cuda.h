// An event of CUDA. For device/mark.cpp.
#pragma once

#include <cuda_runtime.h>

#include "kernels/device/cuda_queue.h"

namespace vigil::kernels {

struct CudaMark {
  explicit CudaMark(const CudaQueue& queue) {
    queue.bind();
    check_cuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming | cudaEventBlockingSync), "event");
    if (const cudaError_t status = cudaEventRecord(event, queue.stream()); status != cudaSuccess) {
      cudaEventDestroy(event);
      check_cuda(status, "event");
    }
  }
  ~CudaMark() { cudaEventDestroy(event); }
  CudaMark(const CudaMark&) = delete;
  CudaMark& operator=(const CudaMark&) = delete;

  bool is_reached() const {
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) {
      static_cast<void>(cudaGetLastError());
      return false;
    }
    check_cuda(status, "event");
    return true;
  }
  void hold(const CudaQueue& queue) const {
    queue.bind();
    check_cuda(cudaStreamWaitEvent(queue.stream(), event), "event");
  }
  void wait() const { check_cuda(cudaEventSynchronize(event), "event"); }

  cudaEvent_t event = nullptr;
};

}  // namespace vigil::kernels
