#include <limits>

#include "kernels/argmax/argmax_backends.h"
#include "kernels/device/cpu.h"

namespace vigil::kernels {

void cpu::largest_columns(Stream& stream, ConstMatrix x, std::int32_t* columns, float* values) {
  parallel_blocks(stream, x.rows, 8, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = x.row<float>(i);
      float largest = -std::numeric_limits<float>::infinity();
      columns[i] = -1;
      for (std::int64_t j = 0; j < x.cols; ++j)
        if (row[j] > largest) {
          largest = row[j];
          columns[i] = static_cast<std::int32_t>(j);
        }
      if (values != nullptr) values[i] = largest;
    }
  });
}

}  // namespace vigil::kernels
