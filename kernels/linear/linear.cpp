#include "kernels/linear/linear.h"

#include <stdexcept>
#include <string>

#include "kernels/device/dispatch.h"
#include "kernels/linear/linear_backends.h"

namespace vigil::kernels {
namespace {

void check(ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options) {
  const auto fail = [](const std::string& what) { throw std::invalid_argument("linear: " + what); };
  const bool quantized = w.dtype == DType::e4m3;
  if (x.dtype != w.dtype && (!quantized || (x.dtype != DType::f32 && x.dtype != DType::bf16)))
    fail(std::string("x is ") + name_of(x.dtype) + ", w is " + name_of(w.dtype));
  if (!quantized && x.dtype != DType::f32 && x.dtype != DType::bf16)
    fail(std::string("no products of ") + name_of(x.dtype));
  for (const ConstMatrix& matrix : {x, w})
    if (matrix.dtype == DType::e4m3 && (matrix.scales == nullptr || matrix.stride % 16 != 0))
      fail("a matrix of e4m3 without scales, or with rows that nothing follows");
  if (out.dtype != DType::f32 && out.dtype != (quantized ? DType::bf16 : x.dtype))
    fail(std::string("no output in ") + name_of(out.dtype));
  if (x.cols != w.cols || x.rows != out.rows || w.rows != out.cols)
    fail("[" + std::to_string(x.rows) + ", " + std::to_string(x.cols) + "] times [" + std::to_string(w.rows) +
         ", " + std::to_string(w.cols) + "] transposed does not give [" + std::to_string(out.rows) + ", " +
         std::to_string(out.cols) + "]");
  if (options.accumulate &&
      (out.dtype != DType::f32 || options.activation != Activation::none || options.multiply.data != nullptr))
    fail("only plain f32 results can be added up");
  if (options.multiply.data != nullptr &&
      (options.multiply.rows != out.rows || options.multiply.cols != out.cols ||
       options.multiply.dtype != out.dtype))
    fail("the gate has another shape or type than the output");
}

}  // namespace

void linear(Stream& stream, ConstMatrix x, ConstMatrix w, Matrix out, const LinearOptions& options) {
  check(x, w, out, options);
  if (x.rows == 0 || w.rows == 0) return;
  if (w.dtype == DType::e4m3) {
    VIGIL_ON_DEVICE(stream, linear_e4m3(stream, x, w, out, options));
  } else {
    VIGIL_ON_DEVICE(stream, linear(stream, x, w, out, options));
  }
}

bool has_e4m3_products(Stream& stream) {
  return VIGIL_ON_DEVICE(stream, has_e4m3_products(stream));
}

}  // namespace vigil::kernels
