// Times of sums over GPUs, one JSON object a line: by our kernels and by NCCL, in captured graphs, beside the
// norm alone and the rate at which one GPU copies from the other. Needs two GPUs.
#include <algorithm>
#include <barrier>
#include <cstdio>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "kernels/collective/collective.h"
#include "kernels/collective/group_cuda.h"
#include "kernels/device/cuda_queue.h"
#include "kernels/random/random.h"
#include "kernels/rms_norm/rms_norm.h"

namespace {

using namespace vigil::kernels;

constexpr int kWarm = 3;
constexpr int kRuns = 15;

/// The operations under test, on memory of their own.
struct Rank {
  Stream stream;
  Communicator member;
  std::int64_t rows, cols;
  Buffer x, weight, out;

  Rank(Stream on, Communicator as, std::int64_t count, std::int64_t width)
      : stream(std::move(on)), member(std::move(as)), rows(count), cols(width) {
    x = Buffer(stream, static_cast<std::size_t>(rows * cols) * sizeof(float));
    weight = Buffer(stream, static_cast<std::size_t>(cols) * sizeof(float));
    out = Buffer(stream, static_cast<std::size_t>(rows * cols) * sizeof(bf16));
    fill_random(stream, sums(), 1, 1);
    fill_random(stream, dense(weight.data(), DType::f32, 1, cols), 2, 1);
    member.reserve(DType::bf16, rows, cols);
    // Small enough for their sums to stay finite.
    for (const int which : {0, 1}) fill_random(stream, member.part(which, DType::bf16, rows, cols), 3, 1e-3F);
  }
  Matrix sums() const { return dense(x.data(), DType::f32, rows, cols); }
  SumNorm norm() const { return {weight.as<float>(), 1e-6F, dense(out.data(), DType::bf16, rows, cols)}; }
};

/// Median microseconds of one of `count` operations in a graph, on rank 0; the ranks begin together.
double measure(std::span<const Stream> streams, const std::vector<Communicator>& members, std::int64_t rows,
               std::int64_t cols, int count, const std::function<void(Rank&, int)>& operation) {
  std::barrier meet(static_cast<std::ptrdiff_t>(streams.size()));
  std::vector<float> times;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < streams.size(); ++r)
    threads.emplace_back([&, r] {
      try {
        Rank rank(streams[r], members[r], rows, cols);
        const CudaQueue& queue = rank.stream.cuda_queue();
        queue.bind();
        for (int i = 0; i < 2; ++i) operation(rank, i);  // NCCL sets itself up, kernels are loaded
        rank.stream.synchronize();
        cudaGraph_t graph = nullptr;
        cudaGraphExec_t ready = nullptr;
        check_cuda(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal), "capture");
        for (int i = 0; i < count; ++i) operation(rank, i);
        check_cuda(cudaStreamEndCapture(queue.stream(), &graph), "capture");
        check_cuda(cudaGraphInstantiate(&ready, graph, 0), "graph");
        cudaEvent_t start = nullptr;
        cudaEvent_t stop = nullptr;
        check_cuda(cudaEventCreate(&start), "event");
        check_cuda(cudaEventCreate(&stop), "event");
        for (int i = 0; i < kWarm + kRuns; ++i) {
          meet.arrive_and_wait();
          check_cuda(cudaEventRecord(start, queue.stream()), "event");
          check_cuda(cudaGraphLaunch(ready, queue.stream()), "graph");
          check_cuda(cudaEventRecord(stop, queue.stream()), "event");
          rank.stream.synchronize();
          float ms = 0;
          check_cuda(cudaEventElapsedTime(&ms, start, stop), "event");
          if (r == 0 && i >= kWarm) times.push_back(ms);
        }
        check_cuda(cudaGraphExecDestroy(ready), "graph");
        check_cuda(cudaGraphDestroy(graph), "graph");
      } catch (...) {
        failure = std::current_exception();
        members[r].call_off();
        meet.arrive_and_drop();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  std::nth_element(times.begin(), times.begin() + kRuns / 2, times.end());
  return static_cast<double>(times[kRuns / 2]) * 1e3 / count;
}

/// Bytes a second that GPU 0 copies from GPU 1.
double copy_rate(std::span<const Stream> streams) {
  constexpr std::size_t kBytes = std::size_t{1} << 30U;
  const Buffer from(streams[1], kBytes);
  const Buffer to(streams[0], kBytes);
  streams[1].synchronize();
  const CudaQueue& queue = streams[0].cuda_queue();
  queue.bind();
  cudaEvent_t start = nullptr;
  cudaEvent_t stop = nullptr;
  check_cuda(cudaEventCreate(&start), "event");
  check_cuda(cudaEventCreate(&stop), "event");
  float best = 1e9F;
  for (int i = 0; i < 5; ++i) {
    check_cuda(cudaEventRecord(start, queue.stream()), "event");
    copy(streams[0], to.data(), from.data(), kBytes);
    check_cuda(cudaEventRecord(stop, queue.stream()), "event");
    streams[0].synchronize();
    float ms = 0;
    check_cuda(cudaEventElapsedTime(&ms, start, stop), "event");
    best = std::min(best, ms);
  }
  return static_cast<double>(kBytes) / static_cast<double>(best) * 1e3;
}

void run() {
  const std::vector<Stream> streams{Stream::cuda(0), Stream::cuda(1)};
  const std::vector<Communicator> ours = make_group(streams);
  // As more than two do it.
  const std::vector<Communicator> in_steps = make_group(streams, Transport::in_two_steps);
  const std::vector<Communicator> nccl = make_group(streams, Transport::nccl);
  const double rate = copy_rate(streams);
  std::printf("{\"case\": \"copy from the other GPU\", \"gb_s\": %.1f}\n", rate * 1e-9);
  constexpr std::int64_t kCols = 3584;
  const auto add = [](Rank& rank, int i) {
    add_parts(rank.stream, rank.member, i % 2, DType::bf16, rank.sums(), rank.norm());
  };
  const auto norm_alone = [](Rank& rank, int) {
    rms_norm(rank.stream, rank.sums(), rank.norm().weight, rank.norm().epsilon, rank.norm().out);
  };
  const auto reduce = [](Rank& rank, int i) {
    const Matrix part = rank.member.part(i % 2, DType::bf16, rank.rows, rank.cols);
    rank.member.group().cuda->all_reduce(rank.member.rank(),
                                         dense(part.data, part.dtype, part.rows, part.stride));
  };
  for (const std::int64_t rows : {1, 4, 16, 32, 64, 128, 512, 2048, 10'269}) {
    const int count = rows > 256 ? 8 : 56;
    const double bytes = static_cast<double>(rows * kCols) * sizeof(bf16);
    std::printf(
        "{\"rows\": %lld, \"cols\": %lld, \"kb\": %.0f, \"floor_us\": %.2f, \"norm_alone_us\": %.2f, "
        "\"ours_us\": %.2f, \"in_two_steps_us\": %.2f, "
        "\"nccl_us\": %.2f, \"nccl_all_reduce_us\": %.2f}\n",
        static_cast<long long>(rows), static_cast<long long>(kCols), bytes / 1e3, bytes / rate * 1e6,
        measure(streams, ours, rows, kCols, count, norm_alone),
        measure(streams, ours, rows, kCols, count, add), measure(streams, in_steps, rows, kCols, count, add),
        measure(streams, nccl, rows, kCols, count, add), measure(streams, nccl, rows, kCols, count, reduce));
    std::fflush(stdout);
  }
}

}  // namespace

int main() {
  try {
    run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
