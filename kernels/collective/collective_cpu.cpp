#include "kernels/collective/collective_backends.h"
#include "kernels/device/cpu.h"
#include "kernels/rms_norm/rms_norm.h"

namespace vigil::kernels {
namespace {

float get(ConstMatrix matrix, std::int64_t i, std::int64_t j) {
  return matrix.dtype == DType::f32 ? matrix.row<float>(i)[j] : to_float(matrix.row<bf16>(i)[j]);
}

/// The sum of element (i, j) of all ranks, in their order.
float sum_of(const std::vector<Matrix>& shown, std::int64_t i, std::int64_t j) {
  float sum = 0;
  for (const Matrix& matrix : shown) sum += get(matrix, i, j);
  return sum;
}

}  // namespace

void cpu::add_parts(Stream& stream, const Communicator& ranks, Matrix part, Matrix x, const SumNorm& norm) {
  Group& group = ranks.group();
  group.shown[static_cast<std::size_t>(ranks.rank())] = part;
  group.meeting.meet();
  parallel_for(stream, x.rows, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < x.cols; ++j) x.row<float>(i)[j] += sum_of(group.shown, i, j);
  });
  group.meeting.meet();
  if (norm.weight != nullptr) rms_norm(stream, x, norm.weight, norm.epsilon, norm.out);
}

}  // namespace vigil::kernels
