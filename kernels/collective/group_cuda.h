// What the GPUs of a group keep to reach each other. For CUDA implementations only.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include <nccl.h>

#include "kernels/collective/communicator.h"
#include "kernels/collective/sum_cuda.h"
#include "kernels/device/cuda_queue.h"

namespace vigil::kernels {

/// Throws DeviceError that names `what` if `status` is an error.
void check_nccl(ncclResult_t status, const char* what);

class CudaGroup {
 public:
  CudaGroup(std::span<const Stream> streams, Transport transport);
  ~CudaGroup();
  CudaGroup(const CudaGroup&) = delete;
  CudaGroup& operator=(const CudaGroup&) = delete;

  /// Whether its kernels read and write each other's memory.
  bool peers() const { return peers_; }
  /// Every rank's memory, seen from `rank`.
  cuda::Ranks seen_from(int rank) const;

  void place_parts(int rank, const std::array<Buffer, 2>& parts);
  const std::array<const void*, cuda::kMostRanks>& parts(int which) const {
    return parts_[static_cast<std::size_t>(which)];
  }

  /// NCCL's communicator of a rank, made when it is first asked for: then by all ranks, each on its thread.
  ncclComm_t nccl(int rank, Meeting& meeting);

  void call_off() noexcept;
  void reset();

 private:
  void clear(std::size_t rank) const;

  std::vector<Stream> streams_;
  bool peers_ = true;
  /// A cuda::RankState and its inbox.
  std::vector<Buffer> memory_;
  std::array<std::array<const void*, cuda::kMostRanks>, 2> parts_{};
  /// Pinned; what kernels that wait look at from time to time.
  int* off_ = nullptr;
  ncclUniqueId id_{};
  std::vector<ncclComm_t> nccl_;
};

}  // namespace vigil::kernels
