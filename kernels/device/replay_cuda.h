// Replay on a GPU: one CUDA graph a key.
#pragma once

#include <cstdint>
#include <functional>
#include <map>

#include <cuda_runtime_api.h>

namespace vigil::kernels {

class CudaQueue;

class CudaReplay {
 public:
  CudaReplay() = default;
  ~CudaReplay();
  CudaReplay(const CudaReplay&) = delete;
  CudaReplay& operator=(const CudaReplay&) = delete;

  void run(CudaQueue& queue, std::uint64_t key, const std::function<void()>& submit);
  std::size_t recorded() const;

 private:
  static cudaGraphExec_t record(CudaQueue& queue, const std::function<void()>& submit);
  void clear();

  /// Null: the work ran once, and is recorded when it comes again.
  std::map<std::uint64_t, cudaGraphExec_t> graphs_;
  /// Of the queue when the graphs were right.
  std::uint64_t allocations_ = 0;
};

}  // namespace vigil::kernels
