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

void cpu::all_reduce(Stream& stream, const Communicator& ranks, Matrix x) {
  Group& group = ranks.group();
  group.shown[static_cast<std::size_t>(ranks.rank())] = x;
  group.meeting.meet();
  // Each rank sums a share of the rows, and gives it to all.
  const std::int64_t begin = x.rows * ranks.rank() / ranks.ranks();
  const std::int64_t end = x.rows * (ranks.rank() + 1) / ranks.ranks();
  parallel_for(stream, end - begin, [&](std::int64_t at) {
    const std::int64_t i = begin + at;
    for (std::int64_t j = 0; j < x.cols; ++j) {
      const float sum = sum_of(group.shown, i, j);
      for (const Matrix& matrix : group.shown) {
        if (x.dtype == DType::f32) {
          matrix.row<float>(i)[j] = sum;
        } else {
          matrix.row<bf16>(i)[j] = to_bf16(sum);
        }
      }
    }
  });
  group.meeting.meet();
}

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
