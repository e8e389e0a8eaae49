// Ranks: devices of one process that each compute a part of a result, and what they share to add the parts
// up.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/collective/meeting.h"
#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// How GPUs add up.
enum class Transport : std::uint8_t {
  /// By kernels that read and write each other's memory where the GPUs can; NCCL where they cannot.
  automatic,
  /// The same, large sums of two ranks in two steps as those of more.
  in_two_steps,
  /// NCCL always.
  nccl,
};

/// What GPUs keep for a group; known to CUDA implementations only (collective/group_cuda.h).
class CudaGroup;

/// What the ranks of one group share.
struct Group {
  explicit Group(std::span<const Stream> of_ranks)
      : streams(of_ranks.begin(), of_ranks.end()),
        meeting(static_cast<int>(of_ranks.size())),
        parts(of_ranks.size()) {}

  std::vector<Stream> streams;
  Meeting meeting;
  /// Of each rank, written by it alone between meetings.
  std::vector<std::array<Buffer, 2>> parts;
  /// What an operation shows to the others on the CPU.
  std::vector<Matrix> shown{streams.size()};
  /// Null on the CPU.
  std::shared_ptr<CudaGroup> cuda;
};

/// One rank's membership of a group. Each rank has a thread of its own that calls the same operations
/// (collective.h) with the same shapes in the same order, on its rank's stream; an operation begins on a
/// device when all others have come there. Groups are independent of each other: several may be at work on
/// the same devices at once, each with its streams. A copy is a second name.
class Communicator {
 public:
  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(group_->streams.size()); }

  /// Makes room for parts of this size in `part`; does nothing if there is. All ranks call it with the same
  /// size. What was there is lost, and a GPU waits for all that was submitted, if it has to grow. Throws
  /// std::bad_alloc, DeviceError.
  void reserve(DType dtype, std::int64_t rows, std::int64_t cols) const;

  /// Memory for this rank's part of a sum, one of two (0 and 1), [rows, cols] with gaps between rows. The
  /// next sum is of the other one: this one still has readers until then.
  Matrix part(int which, DType dtype, std::int64_t rows, std::int64_t cols) const;

  /// Lets all ranks that wait for each other go on: on the host with a DeviceError, on a GPU with results
  /// that mean nothing. From any thread; for a rank that fails and will not come.
  void call_off() const noexcept;
  /// Makes the group usable again after `call_off`. One thread, while no other is in an operation; waits for
  /// all streams.
  void reset() const;

  Group& group() const { return *group_; }

 private:
  friend std::vector<Communicator> make_group(std::span<const Stream> streams, Transport transport);
  Communicator(std::shared_ptr<Group> group, int rank) : group_(std::move(group)), rank_(rank) {}

  std::shared_ptr<Group> group_;
  int rank_;
};

/// A group of one rank a stream, in their order. Throws std::invalid_argument for no stream, for more than 8,
/// for streams of different kinds and for two of one GPU; DeviceError for GPUs that cannot reach each other.
std::vector<Communicator> make_group(std::span<const Stream> streams,
                                     Transport transport = Transport::automatic);

}  // namespace vigil::kernels
