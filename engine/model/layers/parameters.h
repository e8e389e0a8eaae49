// From weights in files to what kernels take: matrices in the type of computation, small vectors in f32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/model/files/weights.h"
#include "engine/model/layers/projections.h"
#include "engine/model/layers/quantization.h"
#include "kernels/device/buffer.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"
#include "kernels/linear/linear.h"

namespace vigil::model {

/// Rows or columns [first, first + count) of a matrix.
struct Range {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

/// Hands out a model's parameters on a stream's device. On the CPU a matrix whose file has the type of
/// computation is used where it is mapped; others are converted once and kept here, as is everything on a
/// GPU. Views are valid as long as this object and the weights live. Movable.
class Parameters {
 public:
  /// `compute` is f32 or bf16.
  Parameters(const Weights& weights, const kernels::Stream& stream, kernels::DType compute,
             Quantization quantization = Quantization::none)
      : weights_(&weights), stream_(stream), compute_(compute), quantization_(quantization) {}

  /// Parameters that a seed makes up on the device, for measuring shapes without their checkpoints: matrices
  /// with variance 1 / cols, so that activations stay of size one, norm weights of one, small biases. The
  /// same on every device, up to the rounding of `compute`.
  Parameters(std::uint64_t seed, const kernels::Stream& stream, kernels::DType compute,
             Quantization quantization = Quantization::none)
      : seed_(seed), stream_(stream), compute_(compute), quantization_(quantization) {}

  kernels::DType compute() const { return compute_; }
  Quantization quantization() const { return quantization_; }
  kernels::DeviceKind device() const { return stream_.kind(); }

  /// A matrix [rows, cols] in the type of computation. Throws ModelError as `Weights::get` does.
  kernels::ConstMatrix matrix(std::string_view name, std::int64_t rows, std::int64_t cols);

  /// Some of its rows, which are all that is read or moved.
  kernels::ConstMatrix rows_of(std::string_view name, std::int64_t rows, std::int64_t cols, Range part);

  /// The weights of a large product: a matrix, or what `quantization` makes of it. Throws DeviceError where
  /// the device has no such products.
  kernels::ConstMatrix large(std::string_view name, std::int64_t rows, std::int64_t cols) {
    return large(name, rows, cols, rows, cols);
  }
  /// The same, larger: rows and columns of zeros follow those of the file.
  kernels::ConstMatrix large(std::string_view name, std::int64_t rows, std::int64_t cols,
                             std::int64_t to_rows, std::int64_t to_cols);
  /// Some of its columns, which are all that is read or moved. On the CPU they stay where they are, with gaps
  /// between rows. A scale of a rounded row is of these columns alone.
  kernels::ConstMatrix large_columns(std::string_view name, std::int64_t rows, std::int64_t cols, Range part);

  /// A matrix, larger: rows and columns of zeros follow those of the file.
  kernels::ConstMatrix padded(std::string_view name, std::int64_t rows, std::int64_t cols,
                              std::int64_t to_rows, std::int64_t to_cols);

  /// The same for a tensor of more dimensions, seen as [rows, product of the others].
  kernels::ConstMatrix folded(std::string_view name, std::initializer_list<std::int64_t> shape);

  /// A matrix in the file's own type.
  kernels::ConstMatrix table(std::string_view name, std::int64_t rows, std::int64_t cols);

  /// A vector as f32 (norm weights, biases); zeros follow up to `padded` values.
  const float* vector(std::string_view name, std::int64_t size, std::int64_t padded = 0);

  /// The same in each type that products of this device take.
  kernels::Bias bias(std::string_view name, std::int64_t size, std::int64_t padded = 0);

  /// One of several weights of one input.
  struct Projection {
    std::string weight;
    /// Empty: none.
    std::string bias;
    /// Of the file, and those that are wanted with the zeros that follow them.
    std::int64_t rows = 0;
    std::int64_t padded_rows = 0;
    /// Absent: all rows are wanted.
    std::optional<Range> part = std::nullopt;

    Range wanted() const { return part.value_or(Range{0, rows}); }
  };

  /// Weights [rows, cols] of one input, each as `large` gives it. On a GPU they lie one after the other.
  Projections projections(const std::vector<Projection>& wanted, std::int64_t cols);

  /// Values that are computed rather than read.
  template <typename T>
  const T* keep(std::span<const T> values) {
    return reinterpret_cast<const T*>(keep_bytes(std::as_bytes(values)));
  }

  /// Waits until all that was handed out lies where it belongs, for use on other streams.
  void ready() const { stream_.synchronize(); }

  /// Bytes of the matrices that had to be converted, rounded or moved to a GPU.
  std::uint64_t owned_bytes() const { return owned_bytes_; }

 private:
  /// The part of a matrix that is wanted, and how large it is in a file.
  struct Tile {
    std::int64_t file_rows, file_cols;
    Range rows, cols;

    std::int64_t first() const { return rows.first * file_cols + cols.first; }
  };

  /// A tile, followed by zeros up to [to_rows, to_cols]; and as the weights of a large product.
  kernels::ConstMatrix tile_of(std::string_view name, const Tile& tile, std::int64_t to_rows,
                               std::int64_t to_cols);
  kernels::ConstMatrix large_tile(std::string_view name, const Tile& tile, std::int64_t to_rows,
                                  std::int64_t to_cols);
  kernels::ConstMatrix placed(const TensorView& tensor, const Tile& tile, std::int64_t to_rows,
                              std::int64_t to_cols);
  /// Rounds a matrix, of which `owned_` holds what came after the first `before` buffers: that is dropped.
  kernels::ConstMatrix quantized(kernels::ConstMatrix wide, std::size_t before);
  /// Rows of a matrix into memory that is there, then zeros.
  void place(const Projection& wanted, kernels::Matrix to);
  kernels::Bias keep_bias(std::span<const float> values);
  /// The wanted ones of `size` numbers; zeros follow up to `padded`.
  std::vector<float> numbers(std::string_view name, std::int64_t size, Range wanted,
                             std::int64_t padded) const;
  const std::byte* keep_bytes(std::span<const std::byte> bytes);

  /// Zeros, and made-up numbers in their first rows and columns.
  kernels::ConstMatrix made_up(std::string_view name, const Tile& tile, std::int64_t to_rows,
                               std::int64_t to_cols, kernels::DType dtype);
  void make_up(std::string_view name, const Tile& tile, kernels::Matrix to);
  std::uint64_t seed_of(std::string_view name) const;

  /// Null: made up.
  const Weights* weights_ = nullptr;
  std::uint64_t seed_ = 0;
  kernels::Stream stream_;
  kernels::DType compute_;
  Quantization quantization_ = Quantization::none;
  std::deque<kernels::Buffer> owned_;
  std::uint64_t owned_bytes_ = 0;
};

}  // namespace vigil::model
