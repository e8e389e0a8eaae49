#include "kernels/collective/collective.h"

#include <stdexcept>
#include <string>

#include "kernels/collective/collective_backends.h"
#include "kernels/device/dispatch.h"

namespace vigil::kernels {
namespace {

bool is_number(DType type) {
  return type == DType::f32 || type == DType::bf16;
}

}  // namespace

void add_parts(Stream& stream, const Communicator& ranks, int which, DType dtype, Matrix x,
               const SumNorm& norm) {
  if (!is_number(dtype) || x.dtype != DType::f32)
    throw std::invalid_argument(std::string("add_parts: parts of ") + name_of(dtype) + " into " +
                                name_of(x.dtype));
  if (norm.weight != nullptr &&
      (norm.out.dtype != dtype || norm.out.rows != x.rows || norm.out.cols != x.cols))
    throw std::invalid_argument("add_parts: the norm does not fit the sum");
  if (x.cols > kMostSumColumns)
    throw std::invalid_argument("add_parts: rows of more than " + std::to_string(kMostSumColumns));
  if (x.rows == 0 || x.cols == 0) return;
  const Matrix part = ranks.part(which, dtype, x.rows, x.cols);
#if VIGIL_CUDA
  if (stream.kind() == DeviceKind::cuda) return cuda::add_parts(stream, ranks, which, part, x, norm);
#endif
  cpu::add_parts(stream, ranks, part, x, norm);
}

}  // namespace vigil::kernels
