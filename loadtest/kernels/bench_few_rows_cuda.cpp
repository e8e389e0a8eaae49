// Times of the products of one to sixteen rows at the shape of Qwen2.5-VL 7B, whole and what each of two GPUs
// has of it, one JSON object a line: each product after itself, and a layer's after each other with their
// norms, in captured graphs, beside the time that a copy on the device takes for the weights' bytes.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/cuda_queue.h"
#include "kernels/device/cuda_timer.h"
#include "kernels/linear/gate.h"
#include "kernels/linear/linear.h"
#include "kernels/random/random.h"
#include "kernels/rms_norm/rms_norm.h"

namespace {

using namespace vigil::kernels;

constexpr int kLayers = 8;
constexpr int kWarm = 3;
constexpr int kRuns = 15;
constexpr std::int64_t kHidden = 3584;

double median_seconds(const CudaQueue& queue, const std::function<void()>& submit) {
  const CudaTimer timer;
  std::vector<float> seconds;
  for (int i = 0; i < kWarm + kRuns; ++i) {
    const float each = timer.seconds(queue, submit);
    if (i >= kWarm) seconds.push_back(each);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return static_cast<double>(seconds[kRuns / 2]);
}

/// Median seconds of what `submit` submits, in a graph.
double replayed_seconds(const Stream& stream, const std::function<void()>& submit) {
  const CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  submit();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  check_cuda(cudaStreamBeginCapture(queue.stream(), cudaStreamCaptureModeThreadLocal), "capture");
  submit();
  check_cuda(cudaStreamEndCapture(queue.stream(), &graph), "capture");
  check_cuda(cudaGraphInstantiate(&ready, graph, 0), "graph");
  const double seconds =
      median_seconds(queue, [&] { check_cuda(cudaGraphLaunch(ready, queue.stream()), "graph"); });
  check_cuda(cudaGraphExecDestroy(ready), "graph");
  check_cuda(cudaGraphDestroy(graph), "graph");
  return seconds;
}

/// Bytes a second that a copy reads and writes.
double copy_rate(const Stream& stream) {
  constexpr std::size_t kBytes = std::size_t{2} << 30U;
  const Buffer from(stream, kBytes);
  const Buffer to(stream, kBytes);
  const CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  return 2.0 * kBytes / median_seconds(queue, [&] { copy(stream, to.data(), from.data(), kBytes); });
}

/// One matrix of weights for each layer, so that none is found in a cache.
struct Weights {
  std::vector<Buffer> layers;
  std::int64_t rows, cols;

  Weights(Stream& stream, std::int64_t count, std::int64_t width) : rows(count), cols(width) {
    for (std::uint64_t i = 0; i < kLayers; ++i) {
      layers.emplace_back(stream, static_cast<std::size_t>(bytes()));
      fill_random(stream, of(static_cast<int>(i)), i, 1e-3F);
    }
  }
  std::int64_t bytes() const { return rows * cols * static_cast<std::int64_t>(sizeof(bf16)); }
  Matrix of(int layer) const {
    return dense(layers[static_cast<std::size_t>(layer)].data(), DType::bf16, rows, cols);
  }
};

/// A GPU's part of a model whose layers `parts` GPUs share.
void run(Stream& stream, std::int64_t parts, double rate) {
  const Weights qkv(stream, 4608 / parts, kHidden);
  const Weights output(stream, kHidden, kHidden / parts);
  const Weights gate(stream, 37'888 / parts, kHidden);
  const Weights down(stream, kHidden, 18'944 / parts);
  constexpr std::int64_t kMostRows = 16;
  const Buffer x_bytes(stream, kMostRows * kHidden * sizeof(float));
  const Buffer normed_bytes(stream, kMostRows * kHidden * sizeof(bf16));
  const Buffer heads_bytes(stream, kMostRows * 4608 * sizeof(bf16));
  const Buffer inner_bytes(stream, kMostRows * 37'888 * sizeof(bf16));
  const Buffer weight(stream, kHidden * sizeof(float));
  fill_random(stream, dense(weight.data(), DType::f32, 1, kHidden), 1, 1);

  for (const std::int64_t rows : {1, 2, 4, 8, 16}) {
    const Matrix x = dense(x_bytes.data(), DType::f32, rows, kHidden);
    const Matrix normed = dense(normed_bytes.data(), DType::bf16, rows, kHidden);
    const Matrix heads = dense(heads_bytes.data(), DType::bf16, rows, qkv.rows);
    const Matrix inner = dense(inner_bytes.data(), DType::bf16, rows, gate.rows);
    fill_random(stream, x, 2, 1);
    fill_random(stream, normed, 3, 1);
    fill_random(stream, heads, 4, 1);
    fill_random(stream, inner, 5, 1);
    const auto norm = [&] { rms_norm(stream, x, weight.as<float>(), 1e-6F, normed); };
    const auto do_qkv = [&](int layer) { linear(stream, normed, qkv.of(layer), heads); };
    const auto do_output = [&](int layer) {
      linear(stream, heads.columns(0, output.cols), output.of(layer), x, {.accumulate = true});
    };
    const auto do_gate = [&](int layer) {
      gated_linear(stream, normed, gate.of(layer), {}, Activation::silu, inner);
    };
    const auto do_down = [&](int layer) {
      linear(stream, inner.columns(0, down.cols), down.of(layer), x, {.accumulate = true});
    };
    const auto tell = [&](const char* name, std::int64_t bytes, const std::function<void(int)>& submit) {
      const double seconds = replayed_seconds(stream,
                                              [&] {
                                                for (int layer = 0; layer < kLayers; ++layer) submit(layer);
                                              }) /
                             kLayers;
      const double floor = static_cast<double>(bytes) / rate;
      std::printf(
          "{\"gpus\": %lld, \"rows\": %lld, \"case\": \"%s\", \"mb\": %.1f, \"floor_us\": %.2f, \"us\": "
          "%.2f, "
          "\"of_floor\": %.3f}\n",
          static_cast<long long>(parts), static_cast<long long>(rows), name,
          static_cast<double>(bytes) * 1e-6, floor * 1e6, seconds * 1e6, floor / seconds);
      std::fflush(stdout);
    };
    tell("query, key, value", qkv.bytes(), do_qkv);
    tell("output", output.bytes(), do_output);
    tell("gate and value", gate.bytes(), do_gate);
    tell("down", down.bytes(), do_down);
    tell("a layer with two norms", qkv.bytes() + output.bytes() + gate.bytes() + down.bytes(),
         [&](int layer) {
           norm();
           do_qkv(layer);
           do_output(layer);
           norm();
           do_gate(layer);
           do_down(layer);
         });
  }
}

}  // namespace

int main() {
  try {
    Stream stream = Stream::cuda(0);
    const double rate = copy_rate(stream);
    std::printf("{\"case\": \"a copy on the device\", \"tb_s\": %.3f}\n", rate * 1e-12);
    for (const std::int64_t parts : {1, 2}) run(stream, parts, rate);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
