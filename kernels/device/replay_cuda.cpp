
#include "kernels/device/replay_cuda.h"

#include "kernels/device/cuda_queue.h"
#include "kernels/device/error.h"
#include "kernels/device/slow_path.h"

namespace vigil::kernels {
namespace {

/// More than a scheduler forms of batches that differ in size.
constexpr std::size_t kMostGraphs = 256;

}  // namespace

CudaReplay::~CudaReplay() {
  clear();
}

void CudaReplay::clear() {
  for (const auto& [key, graph] : graphs_)
    if (graph != nullptr) cudaGraphExecDestroy(graph);
  graphs_.clear();
}

std::size_t CudaReplay::recorded() const {
  std::size_t count = 0;
  for (const auto& [key, graph] : graphs_) count += graph != nullptr ? 1U : 0U;
  return count;
}

void CudaReplay::run(CudaQueue& queue, std::uint64_t key, const std::function<void()>& submit) {
  queue.bind();
  static SlowPath many{"replay", "more than 256 graphs: all are given up and recorded again"};
  static SlowPath full{"replay", "no device memory for a graph: operations one by one"};
  if (graphs_.size() > kMostGraphs) many.taken();
  if (queue.allocations() != allocations_ || graphs_.size() > kMostGraphs) clear();
  const auto found = graphs_.find(key);
  if (found == graphs_.end()) {
    // The first time makes what the work needs: memory, choices of algorithms.
    submit();
    if (queue.allocations() != allocations_) clear();
    allocations_ = queue.allocations();
    graphs_[key] = nullptr;
    return;
  }
  try {
    if (found->second == nullptr) found->second = record(queue, submit);
    check_cuda(cudaGraphLaunch(found->second, queue.stream()), "graph");
  } catch (const OutOfDeviceMemory&) {
    full.taken();
    // Graphs need memory that the work itself does not, and nothing of it has run.
    if (found->second != nullptr) cudaGraphExecDestroy(found->second);
    graphs_.erase(found);
    submit();
  }
}

cudaGraphExec_t CudaReplay::record(CudaQueue& queue, const std::function<void()>& submit) {
  check_cuda(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal), "recording");
  cudaGraph_t graph = nullptr;
  try {
    submit();
  } catch (...) {
    if (cudaStreamEndCapture(queue.stream(), &graph) == cudaSuccess) cudaGraphDestroy(graph);
    static_cast<void>(cudaGetLastError());
    throw;
  }
  check_cuda(cudaStreamEndCapture(queue.stream(), &graph), "recording");
  cudaGraphExec_t made = nullptr;
  const cudaError_t status = cudaGraphInstantiate(&made, graph, 0);
  cudaGraphDestroy(graph);
  check_cuda(status, "graph");
  return made;
}

}  // namespace vigil::kernels
