// How long work takes on a GPU.
#pragma once

#include <functional>

#include <cuda_runtime.h>

#include "kernels/device/cuda_queue.h"

namespace vigil::kernels {

/// Two events around what is submitted to a queue.
class CudaTimer {
 public:
  CudaTimer() {
    check_cuda(cudaEventCreate(&begin_), "event");
    check_cuda(cudaEventCreate(&end_), "event");
  }
  ~CudaTimer() {
    if (begin_ != nullptr) cudaEventDestroy(begin_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  CudaTimer(const CudaTimer&) = delete;
  CudaTimer& operator=(const CudaTimer&) = delete;

  /// Waits for the end of it.
  float seconds(const CudaQueue& queue, const std::function<void()>& submit) const {
    check_cuda(cudaEventRecord(begin_, queue.stream()), "event");
    submit();
    check_cuda(cudaEventRecord(end_, queue.stream()), "event");
    check_cuda(cudaEventSynchronize(end_), "event");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin_, end_), "event");
    return milliseconds / 1000;
  }

 private:
  cudaEvent_t begin_ = nullptr;
  cudaEvent_t end_ = nullptr;
};

}  // namespace vigil::kernels
