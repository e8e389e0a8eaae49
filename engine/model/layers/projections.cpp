#include "engine/model/layers/projections.h"

namespace vigil::model {

std::int64_t Projections::width() const {
  std::int64_t width = 0;
  for (const Part& part : parts_) width += part.weight.rows;
  return width;
}

void Projections::apply(kernels::Stream& stream, kernels::ConstMatrix x, kernels::Matrix out,
                        std::size_t first, std::size_t count) const {
  std::int64_t column = 0;
  for (std::size_t i = 0; i < first; ++i) column += parts_[i].weight.rows;
  for (std::size_t i = first; i < first + count;) {
    Part joined = parts_[i];
    for (++i; joined_ && i < first + count; ++i) joined.weight.rows += parts_[i].weight.rows;
    kernels::linear(stream, x, joined.weight, out.columns(column, joined.weight.rows), {.bias = joined.bias});
    column += joined.weight.rows;
  }
}

}  // namespace vigil::model
