#include <algorithm>
#include <array>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/device/cuda_queue.h"
#include "kernels/device/cuda_timer.h"
#include "kernels/device/product_cache.h"
#include "kernels/device/slow_path.h"
#include "kernels/linear/epilogue_cuda.h"
#include "kernels/linear/few_rows_cuda.h"
#include "kernels/linear/gate_e4m3_cuda.h"
#include "kernels/linear/linear_backends.h"

namespace vigil::kernels {
namespace {

/// The largest power of two up to 16 that divides the address and the row length in bytes.
std::uint32_t alignment_of(const void* data, std::int64_t stride, DType type) {
  const auto bytes = reinterpret_cast<std::uintptr_t>(data) |
                     static_cast<std::uintptr_t>(stride) * static_cast<std::uintptr_t>(size_of(type));
  std::uint32_t alignment = 16;
  while (bytes % alignment != 0) alignment /= 2;
  return alignment;
}

/// Measures a product's algorithms, with nothing of its weights in the caches, and keeps the fastest.
void choose_fastest(const Stream& stream, Product& product, ConstMatrix x, ConstMatrix w, const void* bias,
                    Matrix out) {
  constexpr int kRuns = 5;
  // Less is noise: then the choice stays cuBLASLt's, the same in every process.
  constexpr float kWorthwhile = 0.97F;
  CudaQueue& queue = stream.cuda_queue();
  // Not the output, which may be added to.
  const Buffer unused(stream, static_cast<std::size_t>(out.rows * out.stride) * size_of(out.dtype));
  void* workspace = queue.workspace(CudaQueue::Workspace::products, CudaQueue::kWorkspaceBytes);
  const CudaTimer timer;
  std::vector<float> medians;
  for (std::size_t i = 0; i < product.candidates(); ++i) {
    std::array<float, kRuns> seconds{};
    for (float& each : seconds) {
      check_cuda(cudaMemsetAsync(workspace, 0, CudaQueue::kWorkspaceBytes, queue.stream()), "products");
      each = timer.seconds(queue, [&] {
        product.run(queue.blas(), queue.stream(), x.data, w.data, bias, unused.data(), workspace,
                    CudaQueue::kWorkspaceBytes, i);
      });
    }
    std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
    medians.push_back(seconds[kRuns / 2]);
  }
  const auto fastest = std::min_element(medians.begin(), medians.end());
  product.choose(
      *fastest < kWorthwhile * medians.front() ? static_cast<std::size_t>(fastest - medians.begin()) : 0);
}

}  // namespace

void cuda::linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options) {
  CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  const bool finish = options.activation != Activation::none || options.multiply.data != nullptr;
  // cuBLASLt adds a bias of the output's own type.
  const void* bias =
      out.dtype == DType::bf16 ? static_cast<const void*>(options.bias.rounded) : options.bias.values;
  if (finish) bias = nullptr;

  bool done = !finish && fits_few_rows(x, w);
  if (done) {
    few_rows(queue, x, w, out, options.bias.values, options.accumulate);
    return;
  }
  if (x.cols > 0) {
    const ProductShape shape{.m = x.rows,
                             .n = w.rows,
                             .k = x.cols,
                             .x_stride = x.stride,
                             .w_stride = w.stride,
                             .out_stride = out.stride,
                             .in = x.dtype,
                             .out = out.dtype,
                             .bias = bias != nullptr,
                             .accumulate = options.accumulate,
                             .fast = false,
                             .x_alignment = alignment_of(x.data, x.stride, x.dtype),
                             .w_alignment = alignment_of(w.data, w.stride, w.dtype),
                             .out_alignment = alignment_of(out.data, out.stride, out.dtype)};
    static SlowPath slow{
        "linear",
        "rows that do not begin at multiples of 16 bytes: of cuBLASLt's algorithms the slower ones"};
    if (std::min({shape.x_alignment, shape.w_alignment, shape.out_alignment}) < 16) slow.taken();
    Product& product = queue.products().of(queue.blas(), shape, CudaQueue::kWorkspaceBytes);
    if (product.candidates() > 1) choose_fastest(stream, product, x, w, bias, out);
    done = product.possible();
    if (done)
      product.run(queue.blas(), queue.stream(), x.data, w.data, bias, out.data,
                  queue.workspace(CudaQueue::Workspace::products, CudaQueue::kWorkspaceBytes),
                  CudaQueue::kWorkspaceBytes);
  }
  if (!done) {
    static SlowPath slow{"linear", "a shape that cuBLASLt refuses: a thread an element"};
    if (x.cols > 0) slow.taken();
    plain_product(queue.stream(), x, w, out, options.accumulate);
    bias = nullptr;
  }
  if (finish || (options.bias.values != nullptr && bias == nullptr))
    apply_epilogue(queue.stream(), out, options.bias.values, options.activation, options.multiply);
}

void cuda::gated_linear(Stream& stream, ConstMatrix x, ConstMatrix w, Bias bias, Activation activation,
                        Matrix inner) {
  const std::int64_t width = inner.cols / 2;
  const Matrix gate = inner.columns(0, width);
  if (fits_few_rows(x, w)) {
    stream.cuda_queue().bind();
    return few_rows_gated(stream.cuda_queue(), x, w, gate, bias.values, activation);
  }
  cuda::linear(stream, x, w, inner, {.bias = bias});
  cuda::apply_gate(stream, gate, activation, inner.columns(width, width));
}

void cuda::apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply) {
  stream.cuda_queue().bind();
  apply_epilogue(stream.cuda_queue().stream(), gate, nullptr, activation, multiply);
}

void cuda::quantized_gate(Stream& stream, ConstMatrix gate, Activation activation, ConstMatrix multiply,
                          Matrix out) {
  stream.cuda_queue().bind();
  gate_e4m3(stream.cuda_queue().stream(), gate, activation, multiply, out);
}

}  // namespace vigil::kernels
