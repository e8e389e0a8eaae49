#include "kernels/device/cuda_queue.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>

#include "kernels/device/error.h"
#include "kernels/device/product_cache.h"

namespace vigil::kernels {
namespace {

/// Errors that every later call gets again: a kernel, or the device, failed. Of others, that call tells.
bool sticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorExternalDevice:
    case cudaErrorContextIsDestroyed:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

/// One thread copies at a tenth of what the bus takes.
void copy_on_host(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr int kThreads = 4;
  const std::size_t each = (bytes + kThreads - 1) / kThreads;
#pragma omp parallel for num_threads(kThreads) schedule(static)
  for (int i = 0; i < kThreads; ++i) {
    const std::size_t begin = std::min(bytes, each * static_cast<std::size_t>(i));
    std::memcpy(to + begin, from + begin, std::min(each, bytes - begin));
  }
}

}  // namespace

void check_cuda(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that is told is not told again by the next call
  const std::string text = std::string(what) + ": " + cudaGetErrorString(status);
  if (status == cudaErrorMemoryAllocation) throw OutOfDeviceMemory(text);
  throw DeviceError(text, sticky(status));
}

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw DeviceError(std::string(what) + ": " + cublasLtGetStatusString(status));
}

int CudaQueue::devices() {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  static_cast<void>(cudaGetLastError());
  return 0;
}

CudaQueue::CudaQueue(int device, bool first) : device_(device), products_(std::make_unique<ProductCache>()) {
  const int count = devices();
  if (count == 0) throw DeviceError("no GPU: there is none, or its driver is missing or too old");
  if (device < 0 || device >= count)
    throw DeviceError("no GPU " + std::to_string(device) + ": this process sees " + std::to_string(count));
  bind();
  check_cuda(cudaDeviceGetAttribute(&all_multiprocessors_, cudaDevAttrMultiProcessorCount, device),
             "multiprocessors");
  multiprocessors_ = all_multiprocessors_;
  int major = 0;
  check_cuda(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "compute capability");
  if (major != 9)
    throw DeviceError("GPU " + std::to_string(device) + " has compute capability " + std::to_string(major) +
                      ".x, this program has code for 9.0 (Hopper)");
  // Freed memory stays with the process: windows come and go several times a second.
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, device), "memory pool");
  std::uint64_t everything = UINT64_MAX;
  check_cuda(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &everything), "memory pool");
  int last_priority = 0, first_priority = 0;
  check_cuda(cudaDeviceGetStreamPriorityRange(&last_priority, &first_priority), "priorities");
  check_cuda(
      cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, first ? first_priority : last_priority),
      "stream");
  check_cublas(cublasLtCreate(&blas_), "cuBLASLt");
}

CudaQueue::~CudaQueue() {
  // Nobody is left to be told of an error.
  cudaSetDevice(device_);
  for (const Kept& kept : kept_)
    if (kept.memory != nullptr) cudaFreeAsync(kept.memory, stream_);
  if (blas_ != nullptr) cublasLtDestroy(blas_);
  if (mark_ != nullptr) cudaEventDestroy(mark_);
  if (done_ != nullptr) cudaEventDestroy(done_);
  if (stream_ != nullptr) {
    cudaStreamSynchronize(stream_);
    cudaStreamDestroy(stream_);
  }
  if (result_ != nullptr) cudaFreeHost(result_);
  for (const Stage& stage : stages_) {
    if (stage.free != nullptr) cudaEventDestroy(stage.free);
    if (stage.memory != nullptr) cudaFreeHost(stage.memory);
  }
}

void* CudaQueue::workspace(Workspace kind, std::size_t bytes) {
  Kept& kept = kept_[static_cast<std::size_t>(kind)];
  if (bytes > kept.bytes) {
    if (kept.memory != nullptr) free(kept.memory);
    kept = {};
    kept = {allocate(bytes), bytes};
    check_cuda(cudaMemsetAsync(kept.memory, 0, bytes, stream_), "workspace");
  }
  return kept.memory;
}

void CudaQueue::bind() const {
  check_cuda(cudaSetDevice(device_), "GPU");
}

void* CudaQueue::allocate(std::size_t bytes) {
  bind();
  cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream_, &recording), "device memory");
  // A graph would own it, and free it with itself.
  if (recording != cudaStreamCaptureStatusNone)
    throw std::logic_error("device memory is allocated while work is being recorded");
  ++allocations_;
  void* memory = nullptr;
  const cudaError_t status = cudaMallocAsync(&memory, bytes, stream_);
  if (status == cudaErrorMemoryAllocation) {
    static_cast<void>(cudaGetLastError());
    std::size_t free_bytes = 0;
    std::size_t total = 0;
    cudaMemGetInfo(&free_bytes, &total);
    throw OutOfDeviceMemory("GPU " + std::to_string(device_) + " has no room for " +
                            std::to_string(bytes >> 20U) + " MiB (" + std::to_string(free_bytes >> 20U) +
                            " of " + std::to_string(total >> 20U) + " MiB are free)");
  }
  check_cuda(status, "device memory");
  return memory;
}

void CudaQueue::free(void* memory) noexcept {
  cudaSetDevice(device_);
  cudaFreeAsync(memory, stream_);
}

void CudaQueue::copy(void* to, const void* from, std::size_t bytes) {
  bind();
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "copy");
}

void CudaQueue::upload(void* to, const void* from, std::size_t bytes) {
  // Small copies travel with their command. For large ones the driver's own way through pinned memory is a
  // sixth of what the bus gives.
  constexpr std::size_t kWorthStaging = std::size_t{64} << 10U;
  constexpr std::size_t kStageBytes = std::size_t{4} << 20U;
  if (bytes < kWorthStaging) return copy(to, from, bytes);
  bind();
  for (std::size_t done = 0; done < bytes; done += kStageBytes) {
    Stage& stage = stages_[next_stage_++ % stages_.size()];
    if (stage.memory == nullptr) {
      if (stage.free == nullptr)
        check_cuda(cudaEventCreateWithFlags(&stage.free, cudaEventDisableTiming), "event");
      check_cuda(cudaMallocHost(&stage.memory, kStageBytes), "pinned memory");
    } else {
      check_cuda(cudaEventSynchronize(stage.free), "upload");
    }
    const std::size_t part = std::min(kStageBytes, bytes - done);
    copy_on_host(static_cast<std::byte*>(stage.memory), static_cast<const std::byte*>(from) + done, part);
    check_cuda(cudaMemcpyAsync(static_cast<std::byte*>(to) + done, stage.memory, part, cudaMemcpyHostToDevice,
                               stream_),
               "upload");
    check_cuda(cudaEventRecord(stage.free, stream_), "upload");
  }
}

void CudaQueue::download(void* to, const void* from, std::size_t bytes, Wait wait) {
  // From pageable memory the driver would wait twice.
  constexpr std::size_t kResultBytes = std::size_t{16} << 10U;
  if (bytes > kResultBytes) {
    copy(to, from, bytes);
    return synchronize(wait);
  }
  bind();
  if (result_ == nullptr) check_cuda(cudaMallocHost(&result_, kResultBytes), "pinned memory");
  check_cuda(cudaMemcpyAsync(result_, from, bytes, cudaMemcpyDeviceToHost, stream_), "download");
  synchronize(wait);
  std::memcpy(to, result_, bytes);
}

bool CudaQueue::open_memory_to(int device) const {
  if (device == device_) return true;
  int possible = 0;
  check_cuda(cudaDeviceCanAccessPeer(&possible, device, device_), "peer access");
  if (possible == 0) return false;
  cudaMemPool_t pool = nullptr;
  check_cuda(cudaDeviceGetDefaultMemPool(&pool, device_), "memory pool");
  cudaMemAccessDesc access{};
  access.location = {cudaMemLocationTypeDevice, device};
  access.flags = cudaMemAccessFlagsProtReadWrite;
  check_cuda(cudaMemPoolSetAccess(pool, &access, 1), "peer access");
  return true;
}

void CudaQueue::wait_for(CudaQueue& other) {
  other.bind();
  if (other.mark_ == nullptr)
    check_cuda(cudaEventCreateWithFlags(&other.mark_, cudaEventDisableTiming), "event");
  check_cuda(cudaEventRecord(other.mark_, other.stream_), "event");
  bind();
  check_cuda(cudaStreamWaitEvent(stream_, other.mark_), "event");
}

void CudaQueue::synchronize(Wait wait) {
  bind();
  if (wait == Wait::spin) return check_cuda(cudaStreamSynchronize(stream_), "GPU");
  if (done_ == nullptr)
    check_cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming | cudaEventBlockingSync), "event");
  check_cuda(cudaEventRecord(done_, stream_), "event");
  check_cuda(cudaEventSynchronize(done_), "GPU");
}

}  // namespace vigil::kernels
