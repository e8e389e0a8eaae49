// From weights in files to what kernels take: matrices in the type of computation, small vectors in f32.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/weights.h"
#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::model {

/// Hands out a model's parameters. A matrix whose file has the type of computation is used where it is
/// mapped; others are converted once and kept here. Views are valid as long as this object and the weights
/// live.
class Parameters {
 public:
  /// `compute` is f32 or bf16.
  Parameters(const Weights& weights, const kernels::Stream& stream, kernels::DType compute)
      : weights_(&weights), stream_(&stream), compute_(compute) {}

  kernels::DType compute() const { return compute_; }

  /// A matrix [rows, cols] in the type of computation. Throws ModelError as `Weights::get` does.
  kernels::ConstMatrix matrix(std::string_view name, std::int64_t rows, std::int64_t cols);

  /// The same for a tensor of more dimensions, seen as [rows, product of the others].
  kernels::ConstMatrix folded(std::string_view name, std::initializer_list<std::int64_t> shape);

  /// The tensor itself, in the file's own type.
  const TensorView& tensor(std::string_view name, std::initializer_list<std::int64_t> shape) const;

  /// A vector as f32 (norm weights, biases).
  std::vector<float> vector(std::string_view name, std::int64_t size) const;

  /// Bytes of the matrices that had to be converted.
  std::uint64_t converted_bytes() const { return converted_bytes_; }

 private:
  kernels::ConstMatrix converted(const TensorView& tensor, std::int64_t rows, std::int64_t cols);

  const Weights* weights_;
  const kernels::Stream* stream_;
  kernels::DType compute_;
  std::deque<kernels::Buffer> owned_;
  std::uint64_t converted_bytes_ = 0;
};

/// Element `i` of a tensor of floating-point numbers.
float element(const TensorView& tensor, std::int64_t i);

}  // namespace vigil::model
