#include <algorithm>
#include <stdexcept>
#include <string>

#include <omp.h>
#include <oneapi/dnnl/dnnl.hpp>

#include "kernels/device/error.h"
#include "kernels/device/slow_path.h"
#include "kernels/device/stream.h"

#if VIGIL_CUDA
#include "kernels/device/cuda_queue.h"
#endif

namespace vigil::kernels {
namespace {

/// More than any machine that this is meant for has processors.
constexpr int kMostThreads = 1024;

}  // namespace

Stream Stream::cpu(int threads) {
  if (threads < 0) throw std::invalid_argument("a stream cannot have a negative number of threads");
  // The OpenMP runtime has no error for what it cannot start: it ends the process.
  if (threads > kMostThreads)
    throw std::invalid_argument("a stream cannot have " + std::to_string(threads) + " threads, at most " +
                                std::to_string(kMostThreads));
  static SlowPath slow{"everything", "this processor has no AVX2: narrower vectors"};
  if (const auto isa = dnnl::get_effective_cpu_isa();
      isa == dnnl::cpu_isa::sse41 || isa == dnnl::cpu_isa::avx)
    slow.taken();
  return {DeviceKind::cpu, threads == 0 ? std::min(omp_get_num_procs(), kMostThreads) : threads};
}

#if VIGIL_CUDA

Stream Stream::cuda(int index) {
  return {DeviceKind::cuda, 1, std::make_shared<CudaQueue>(index)};
}

Stream Stream::beside(bool first) const {
  if (!queue_) return *this;
  return {DeviceKind::cuda, 1, std::make_shared<CudaQueue>(queue_->device(), first)};
}

void Stream::take_multiprocessors(int most) const {
  if (queue_) queue_->take_multiprocessors(most);
}

int Stream::multiprocessors() const {
  return queue_ ? queue_->multiprocessors() : 0;
}

void Stream::synchronize(Wait wait) const {
  if (queue_) queue_->synchronize(wait);
}

bool share_memory(const Stream& a, const Stream& b) {
  if (a.kind() == DeviceKind::cpu || b.kind() == DeviceKind::cpu) return a.kind() == b.kind();
  const bool there = a.cuda_queue().open_memory_to(b.cuda_queue().device());
  const bool both = b.cuda_queue().open_memory_to(a.cuda_queue().device()) && there;
  static SlowPath slow{"copies between GPUs",
                       "GPUs that cannot read each other's memory: by way of the host"};
  if (!both) slow.taken();
  return both;
}

int cuda_devices() {
  return CudaQueue::devices();
}

#else

Stream Stream::cuda(int /*index*/) {
  throw DeviceError("this program was built without the CUDA backend");
}

Stream Stream::beside(bool /*first*/) const {
  return *this;
}

void Stream::take_multiprocessors(int /*most*/) const {}

int Stream::multiprocessors() const {
  return 0;
}

void Stream::synchronize(Wait /*wait*/) const {}

bool share_memory(const Stream& /*a*/, const Stream& /*b*/) {
  return true;
}

int cuda_devices() {
  return 0;
}

#endif

bool cpu_has_bf16() {
  const auto isa = dnnl::get_effective_cpu_isa();
  // oneDNN's values are bit masks that grow with the instruction set; AMX includes AVX-512 BF16.
  const auto has = [isa](dnnl::cpu_isa wanted) {
    return (static_cast<int>(isa) & static_cast<int>(wanted)) == static_cast<int>(wanted);
  };
  return has(dnnl::cpu_isa::avx512_core_bf16);
}

const char* cpu_isa() {
  switch (dnnl::get_effective_cpu_isa()) {
    case dnnl::cpu_isa::sse41:
      return "sse41";
    case dnnl::cpu_isa::avx:
      return "avx";
    case dnnl::cpu_isa::avx2:
      return "avx2";
    case dnnl::cpu_isa::avx2_vnni:
      return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core:
      return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni:
      return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16:
      return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx:
      return "avx512_core_amx";
    default:
      return "other";
  }
}

}  // namespace vigil::kernels
