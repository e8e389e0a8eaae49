#include "kernels/device/replay.h"

#if VIGIL_CUDA
#include "kernels/device/replay_cuda.h"
#endif

namespace vigil::kernels {

#if VIGIL_CUDA

struct Replay::Graphs {
  CudaReplay cuda;
};

void Replay::run(Stream& stream, std::uint64_t key, const std::function<void()>& submit) {
  if (stream.kind() == DeviceKind::cpu) return submit();
  graphs_->cuda.run(stream.cuda_queue(), key, submit);
}

std::size_t Replay::recorded() const {
  return graphs_->cuda.recorded();
}

#else

struct Replay::Graphs {};

void Replay::run(Stream& /*stream*/, std::uint64_t /*key*/, const std::function<void()>& submit) {
  submit();
}

std::size_t Replay::recorded() const {
  return 0;
}

#endif

Replay::Replay() : graphs_(std::make_unique<Graphs>()) {}
Replay::~Replay() = default;
Replay::Replay(Replay&&) noexcept = default;
Replay& Replay::operator=(Replay&&) noexcept = default;

}  // namespace vigil::kernels
