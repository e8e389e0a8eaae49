// What the GPUs of a group keep to reach each other. For CUDA implementations only.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <nccl.h>

#include "kernels/collective/communicator.h"
#include "kernels/collective/sum_cuda.h"
#include "kernels/device/cuda_queue.h"

namespace vigil::kernels {

class CudaGroup {
 public:
  CudaGroup(std::span<const Stream> streams, Transport transport);
  ~CudaGroup();
  CudaGroup(const CudaGroup&) = delete;
  CudaGroup& operator=(const CudaGroup&) = delete;

  /// Whether its kernels read and write each other's memory.
  bool peers() const { return peers_; }
  /// Whether each rank adds up a share of a large sum, which all then fetch; else each adds up all of it.
  bool shares() const { return shares_; }
  /// Every rank's memory, seen from `rank`.
  cuda::Ranks seen_from(int rank) const;

  void place_parts(int rank, const std::array<Buffer, 2>& parts);
  const std::array<const void*, cuda::kMostRanks>& parts(int which) const {
    return parts_[static_cast<std::size_t>(which)];
  }

  /// NCCL's sum of a dense matrix, in place, on the rank's stream. Throws DeviceError. Only of a group
  /// without peers.
  void all_reduce(int rank, Matrix x) const;

  void call_off() noexcept;
  void reset();

 private:
  struct FreePinned {
    void operator()(int* memory) const noexcept { cudaFreeHost(memory); }
  };

  void clear(std::size_t rank) const;
  bool called_off() const { return *static_cast<const volatile int*>(off_.get()) != 0; }
  void connect();
  void disconnect() noexcept;

  std::vector<Stream> streams_;
  bool peers_ = true;
  bool shares_ = false;
  /// A cuda::RankState and its inbox.
  std::vector<Buffer> memory_;
  std::array<std::array<const void*, cuda::kMostRanks>, 2> parts_{};
  /// Pinned; what kernels that wait look at from time to time.
  std::unique_ptr<int, FreePinned> off_;
  std::vector<ncclComm_t> nccl_;
};

}  // namespace vigil::kernels
