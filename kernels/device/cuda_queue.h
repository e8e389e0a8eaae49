// A stream of one GPU with what its operations need: memory, a cuBLASLt handle, a workspace. For CUDA
// implementations only.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <cublasLt.h>
#include <cuda_runtime.h>

#include "kernels/device/stream.h"

namespace vigil::kernels {

/// Throws DeviceError (OutOfDeviceMemory) that names `what` if `status` is an error.
void check_cuda(cudaError_t status, const char* what);
/// The same for cuBLASLt.
void check_cublas(cublasStatus_t status, const char* what);
/// After a launch: what the driver refused of it.
inline void check_launch(const char* what) {
  check_cuda(cudaGetLastError(), what);
}

/// The chosen algorithms of products, by shape (linear/linear_cuda.cpp).
class ProductCache;

/// Not thread-safe, except `free`.
class CudaQueue {
 public:
  /// Bytes of device memory that matrix products may use besides their operands.
  static constexpr std::size_t kWorkspaceBytes = std::size_t{64} << 20U;

  /// `first`: its kernels' blocks come before those of other queues.
  explicit CudaQueue(int device, bool first = false);
  ~CudaQueue();
  CudaQueue(const CudaQueue&) = delete;
  CudaQueue& operator=(const CudaQueue&) = delete;

  static int devices();

  int device() const { return device_; }
  /// That an operation may take.
  int multiprocessors() const { return multiprocessors_; }
  void take_multiprocessors(int most) { multiprocessors_ = std::clamp(most, 1, all_multiprocessors_); }
  cudaStream_t stream() const { return stream_; }
  cublasLtHandle_t blas() const { return blas_; }
  /// Memory that operations of one kind use one after the other, at least `bytes`; zeros at first, and
  /// whenever it had to grow.
  enum class Workspace : std::uint8_t {
    products,
    indexed_attention,
    decode_attention,
    rounded,
    top_k,
    clusters,
    listed_attention
  };
  void* workspace(Workspace kind, std::size_t bytes);
  ProductCache& products() { return *products_; }

  /// Makes this thread's CUDA calls go to this queue's GPU.
  void bind() const;

  /// Throws OutOfDeviceMemory; std::logic_error while the stream is being recorded.
  void* allocate(std::size_t bytes);
  /// How often memory was allocated so far.
  std::uint64_t allocations() const { return allocations_; }
  void free(void* memory) noexcept;
  /// Between host and device or within the device, by the addresses. Pageable host memory may be used again
  /// when it returns.
  void copy(void* to, const void* from, std::size_t bytes);
  /// From the host, by way of pinned memory where that is faster.
  void upload(void* to, const void* from, std::size_t bytes);
  /// To the host, and waits for it.
  void download(void* to, const void* from, std::size_t bytes, Wait wait);
  void synchronize(Wait wait);
  /// Lets another GPU use the memory that this GPU's streams allocate. False if it cannot.
  bool open_memory_to(int device) const;
  /// What is submitted from here on begins when all that was submitted to the other queue is done.
  void wait_for(CudaQueue& other);

 private:
  int device_;
  int all_multiprocessors_ = 0;
  int multiprocessors_ = 0;
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t blas_ = nullptr;
  /// What others wait for, and what this thread sleeps until.
  cudaEvent_t mark_ = nullptr;
  cudaEvent_t done_ = nullptr;
  /// Pinned memory that is filled while the other is on its way.
  struct Stage {
    void* memory = nullptr;
    cudaEvent_t free = nullptr;
  };
  std::array<Stage, 2> stages_;
  std::size_t next_stage_ = 0;
  /// Pinned, for results of a few bytes.
  void* result_ = nullptr;
  struct Kept {
    void* memory = nullptr;
    std::size_t bytes = 0;
  };
  std::array<Kept, 7> kept_;
  std::uint64_t allocations_ = 0;
  std::unique_ptr<ProductCache> products_;
};

}  // namespace vigil::kernels
