#include <algorithm>
#include <limits>
#include <vector>

#include "kernels/device/cpu.h"
#include "kernels/top_k/top_k_backends.h"

namespace vigil::kernels {

void cpu::top_k(Stream& stream, ConstMatrix x, std::int64_t count, std::int32_t* columns, float* values) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  parallel_blocks(stream, x.rows, 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<std::int32_t> there;
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = x.row<float>(i);
      there.clear();
      for (std::int64_t j = 0; j < x.cols; ++j)
        if (row[j] > kNone) there.push_back(static_cast<std::int32_t>(j));
      const std::int64_t found = std::min(count, static_cast<std::int64_t>(there.size()));
      std::partial_sort(
          there.begin(), there.begin() + found, there.end(),
          [row](std::int32_t a, std::int32_t b) { return row[a] != row[b] ? row[a] > row[b] : a < b; });
      for (std::int64_t j = 0; j < count; ++j) {
        const bool any = j < found;
        columns[i * count + j] = any ? there[static_cast<std::size_t>(j)] : -1;
        values[i * count + j] = any ? row[there[static_cast<std::size_t>(j)]] : kNone;
      }
    }
  });
}

}  // namespace vigil::kernels
