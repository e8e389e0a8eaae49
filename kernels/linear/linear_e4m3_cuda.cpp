// Products of E4M3 on a GPU: cuBLASLt's with a scale for each row of x and of w, and our own of few rows.
//
// Hopper's matrix units keep 14 bits of the largest term when they add up such products. cuBLASLt can move
// sums into f32 every few steps, which costs a tenth of the rate at 3,584 columns and a twentieth at 18,944
// (docs/cuda.md). What it saves grows with the columns, so rows up to kLongestFast of them go without: their
// error stays below that of rounding the result to bf16.
#include "kernels/device/cuda_queue.h"
#include "kernels/device/error.h"
#include "kernels/device/product_cache.h"
#include "kernels/device/slow_path.h"
#include "kernels/linear/epilogue_cuda.h"
#include "kernels/linear/few_rows_cuda.h"
#include "kernels/linear/linear_backends.h"
#include "kernels/quantize/quantize_backends.h"

namespace vigil::kernels {
namespace {

constexpr std::int64_t kLongestFast = 8192;

const Product& product_of(CudaQueue& queue, ConstMatrix x, ConstMatrix w, Matrix out, bool bias,
                          bool accumulate) {
  const ProductShape shape{.m = x.rows,
                           .n = w.rows,
                           .k = e4m3_stride(x.cols),
                           .x_stride = x.stride,
                           .w_stride = w.stride,
                           .out_stride = out.stride,
                           .in = DType::e4m3,
                           .out = out.dtype,
                           .bias = bias,
                           .accumulate = accumulate,
                           .fast = x.cols <= kLongestFast,
                           .x_alignment = 16,
                           .w_alignment = 16,
                           .out_alignment = 16};
  return queue.products().of(queue.blas(), shape, CudaQueue::kWorkspaceBytes, {x.scales, w.scales});
}

/// Whether cuBLASLt takes rows of `out`: it wants multiples of 16 bytes.
bool takes(Matrix out) {
  const auto bytes = reinterpret_cast<std::uintptr_t>(out.data) |
                     static_cast<std::uintptr_t>(out.stride) * size_of(out.dtype) |
                     static_cast<std::uintptr_t>(out.cols) * size_of(out.dtype);
  return bytes % 16 == 0;
}

}  // namespace

void cuda::linear_e4m3(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out,
                       const LinearOptions& options) {
  CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  if (x.dtype != DType::e4m3) {
    const Matrix rounded = e4m3_matrix(
        queue.workspace(CudaQueue::Workspace::rounded, e4m3_bytes(x.rows, x.cols)), x.rows, x.cols);
    cuda::quantize_rows(stream, x, rounded);
    x = rounded;
  }
  const bool finish = options.activation != Activation::none || options.multiply.data != nullptr;
  if (!finish && fits_few_rows(x, w))
    return few_rows(queue, x, w, out, options.bias.values, options.accumulate);

  // cuBLASLt adds a bias in bf16 to such products, whatever their results are.
  const void* bias = finish ? nullptr : options.bias.rounded;
  if (takes(out) && x.cols > 0) {
    const Product& product = product_of(queue, x, w, out, bias != nullptr, options.accumulate);
    if (!product.possible())
      throw DeviceError("linear: cuBLASLt has no product of e4m3 of this shape with a scale a row");
    product.run(queue.blas(), queue.stream(), x.data, w.data, bias, out.data,
                queue.workspace(CudaQueue::Workspace::products, CudaQueue::kWorkspaceBytes),
                CudaQueue::kWorkspaceBytes, 0, {x.scales, w.scales});
  } else {
    static SlowPath slow{"linear",
                         "results of e4m3 products whose rows are no whole 16 bytes: a thread an element"};
    if (x.cols > 0) slow.taken();
    plain_product(queue.stream(), x, w, out, options.accumulate);
    bias = nullptr;
  }
  if (finish || (options.bias.values != nullptr && bias == nullptr))
    apply_epilogue(queue.stream(), out, options.bias.values, options.activation, options.multiply);
}

bool cuda::has_e4m3_products(Stream& stream) {
  CudaQueue& queue = stream.cuda_queue();
  queue.bind();
  constexpr std::int64_t kEdge = 64;
  // Addresses only: nothing is read.
  void* memory = queue.workspace(CudaQueue::Workspace::products, CudaQueue::kWorkspaceBytes);
  const Matrix any = e4m3_matrix(memory, kEdge, kEdge);
  return product_of(queue, any, any, dense(memory, DType::bf16, kEdge, kEdge), false, false).possible();
}

}  // namespace vigil::kernels
