// Several products of one input, whose results lie side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"
#include "kernels/linear/linear.h"

namespace vigil::model {

/// Weights that are multiplied by one input, as query, key and value are. Those whose rows lie one after the
/// other in memory may be joined: neighbours are then one product, as a GPU likes it. The weights are
/// borrowed.
class Projections {
 public:
  struct Part {
    kernels::ConstMatrix weight;
    kernels::Bias bias;
  };

  Projections() = default;
  /// `joined`: each part's weight and bias begin where those of the part before end.
  Projections(std::vector<Part> parts, bool joined) : parts_(std::move(parts)), joined_(joined) {}

  /// Columns of all results.
  std::int64_t width() const;

  /// Computes the parts [first, first + count) into the columns of `out` that are theirs: out is
  /// [x.rows, width()].
  void apply(kernels::Stream& stream, kernels::ConstMatrix x, kernels::Matrix out, std::size_t first,
             std::size_t count) const;
  void apply(kernels::Stream& stream, kernels::ConstMatrix x, kernels::Matrix out) const {
    apply(stream, x, out, 0, parts_.size());
  }

  const Part& part(std::size_t i) const { return parts_[i]; }
  bool joined() const { return joined_; }

 private:
  std::vector<Part> parts_;
  bool joined_ = false;
};

}  // namespace vigil::model
