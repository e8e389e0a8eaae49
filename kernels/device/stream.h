// The place where an operation runs: a device and the order of what is submitted to it.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

namespace vigil::kernels {

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// How a thread waits for a GPU: at once there again when it is done, or without a processor meanwhile, which
/// took 0.16 ms more on an H200.
enum class Wait : std::uint8_t { spin, sleep };

/// What a GPU keeps for one stream; known to CUDA implementations only (device/cuda_queue.h).
class CudaQueue;

/// An ordered queue of operations on one device. Every operation of this room takes the stream that it runs
/// on and picks its implementation by `kind`. On the CPU operations are complete when they return; on a GPU
/// they have been submitted, and `synchronize` waits for them. A copy is a second name of the same queue. Not
/// thread-safe: one owner at a time.
class Stream {
 public:
  /// A CPU stream whose operations use up to `threads` threads; 0 means all processors that this process may
  /// use. Throws std::invalid_argument for a negative number, and for more than 1024.
  static Stream cpu(int threads = 0);

  /// A queue of its own on GPU `index`. Throws DeviceError where there is no such GPU, or where this program
  /// was built without the CUDA backend.
  static Stream cuda(int index = 0);

  /// Another queue on the same device. `first`: where work of both waits for room on a GPU, its own comes
  /// first. Throws DeviceError.
  Stream beside(bool first = false) const;

  /// Operations that would take all of a GPU's multiprocessors and know of a limit (products of few rows,
  /// attention to lists, sums over GPUs, what hashes and fetches clusters, random numbers; neither larger
  /// products nor other attention) take `most` of them from now on, at least 1 and at most all: what another
  /// stream runs at the same time finds the others free. What was recorded before (device/replay.h) keeps
  /// what it takes. Nothing on the CPU.
  void take_multiprocessors(int most) const;
  /// That they take at most; 0 on the CPU.
  int multiprocessors() const;

  DeviceKind kind() const { return kind_; }
  /// Of operations on the CPU; 1 on a GPU.
  int threads() const { return threads_; }

  /// Waits until all that was submitted is done. Throws DeviceError for what went wrong on the GPU since.
  void synchronize(Wait wait = Wait::spin) const;

  /// Only of a CUDA stream.
  CudaQueue& cuda_queue() const { return *queue_; }
  /// Null on the CPU.
  const std::shared_ptr<CudaQueue>& shared_queue() const { return queue_; }

 private:
  Stream(DeviceKind kind, int threads, std::shared_ptr<CudaQueue> queue = nullptr)
      : kind_(kind), threads_(threads), queue_(std::move(queue)) {}
  DeviceKind kind_;
  int threads_;
  std::shared_ptr<CudaQueue> queue_;
};

/// While it lives, `others` multiprocessors of those that the stream's operations may take are left to other
/// streams; then it is as it was.
class LimitedMultiprocessors {
 public:
  LimitedMultiprocessors(const Stream& stream, int others)
      : stream_(stream), before_(stream.multiprocessors()) {
    if (others > 0) stream_.take_multiprocessors(before_ - others);
  }
  ~LimitedMultiprocessors() { stream_.take_multiprocessors(before_); }
  LimitedMultiprocessors(const LimitedMultiprocessors&) = delete;
  LimitedMultiprocessors& operator=(const LimitedMultiprocessors&) = delete;

 private:
  const Stream& stream_;
  int before_;
};

/// Lets both streams' devices read and write each other's memory, what was allocated on them in stream order
/// and what will be. False where two GPUs cannot: copies between them then go by the host. True on the CPU.
bool share_memory(const Stream& a, const Stream& b);

/// GPUs that this process may use; 0 without a driver or without the CUDA backend.
int cuda_devices();

/// True where products of bf16 matrices run on hardware made for them (AVX-512 BF16 or AMX); elsewhere f32 is
/// faster.
bool cpu_has_bf16();

/// The instruction set that matrix products use here, in oneDNN's words ("avx512_core_bf16", say).
const char* cpu_isa();

}  // namespace vigil::kernels
