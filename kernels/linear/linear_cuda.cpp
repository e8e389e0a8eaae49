#include "kernels/device/cuda_queue.h"
#include "kernels/linear/epilogue_cuda.h"
#include "kernels/linear/few_rows_cuda.h"
#include "kernels/linear/linear_backends.h"
#include "kernels/linear/product_cache.h"

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
    few_rows(queue.stream(), x, w, out, options.bias.values, options.accumulate);
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
                             .x_alignment = alignment_of(x.data, x.stride, x.dtype),
                             .w_alignment = alignment_of(w.data, w.stride, w.dtype),
                             .out_alignment = alignment_of(out.data, out.stride, out.dtype)};
    const Product& product = queue.products().of(queue.blas(), shape, CudaQueue::kWorkspaceBytes);
    done = product.possible();
    if (done)
      product.run(queue.blas(), queue.stream(), x.data, w.data, bias, out.data,
                  queue.workspace(CudaQueue::Workspace::products, CudaQueue::kWorkspaceBytes),
                  CudaQueue::kWorkspaceBytes);
  }
  if (!done) {
    plain_product(queue.stream(), x, w, out, options.accumulate);
    bias = nullptr;
  }
  if (finish || (options.bias.values != nullptr && bias == nullptr))
    apply_epilogue(queue.stream(), out, options.bias.values, options.activation, options.multiply);
}

void cuda::apply_gate(Stream& stream, Matrix gate, Activation activation, ConstMatrix multiply) {
  stream.cuda_queue().bind();
  apply_epilogue(stream.cuda_queue().stream(), gate, nullptr, activation, multiply);
}

}  // namespace vigil::kernels
