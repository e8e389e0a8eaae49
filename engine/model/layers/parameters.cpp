#include "engine/model/layers/parameters.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "base/fnv1a.h"
#include "kernels/device/error.h"
#include "kernels/quantize/quantize.h"
#include "kernels/random/random.h"

namespace vigil::model {
namespace {

constexpr float kMadeUpBias = 0.02F;

/// Uniform numbers in [-1, 1) have variance 1/3.
float made_up_scale(std::int64_t cols) {
  return std::sqrt(3.0F / static_cast<float>(cols));
}

template <typename T>
const T* elements_of(const TensorView& tensor) {
  return reinterpret_cast<const T*>(tensor.data);
}

/// Calls `with(elements)`, a pointer to the tensor's type.
template <typename With>
void with_elements(const TensorView& tensor, const With& with) {
  switch (tensor.dtype) {
    case kernels::DType::f32:
      return with(elements_of<float>(tensor));
    case kernels::DType::bf16:
      return with(elements_of<kernels::bf16>(tensor));
    case kernels::DType::f16:
      return with(elements_of<kernels::f16>(tensor));
    case kernels::DType::e4m3:
    case kernels::DType::i32:
    case kernels::DType::u8:
      break;
  }
  throw std::logic_error("parameters are floating-point numbers");
}

/// Rows and columns of a tensor of rows of `file_cols` elements, as rows of `stride` elements of the type of
/// computation; what lies between stays as it is.
void write_tile(const TensorView& tensor, std::int64_t file_cols, Range rows, Range cols, std::int64_t stride,
                kernels::DType compute, std::byte* to) {
  const std::int64_t begin = rows.first * file_cols + cols.first;
  if (tensor.dtype == compute) {
    const auto size = static_cast<std::int64_t>(kernels::size_of(compute));
    for (std::int64_t i = 0; i < rows.count; ++i)
      std::memcpy(to + i * stride * size, tensor.data + (begin + i * file_cols) * size,
                  static_cast<std::size_t>(cols.count * size));
    return;
  }
  const auto convert = [&](auto* elements, const auto& narrow) {
    with_elements(tensor, [&](const auto* from) {
      for (std::int64_t i = 0; i < rows.count; ++i)
        for (std::int64_t j = 0; j < cols.count; ++j)
          elements[i * stride + j] = narrow(kernels::to_float(from[begin + i * file_cols + j]));
    });
  };
  if (compute == kernels::DType::f32) {
    convert(reinterpret_cast<float*>(to), [](float value) { return value; });
  } else {
    convert(reinterpret_cast<kernels::bf16*>(to), kernels::to_bf16);
  }
}

}  // namespace

kernels::ConstMatrix Parameters::matrix(std::string_view name, std::int64_t rows, std::int64_t cols) {
  return padded(name, rows, cols, rows, cols);
}

kernels::ConstMatrix Parameters::rows_of(std::string_view name, std::int64_t rows, std::int64_t cols,
                                         Range part) {
  return tile_of(name, {rows, cols, part, {0, cols}}, part.count, cols);
}

kernels::ConstMatrix Parameters::large(std::string_view name, std::int64_t rows, std::int64_t cols,
                                       std::int64_t to_rows, std::int64_t to_cols) {
  return large_tile(name, {rows, cols, {0, rows}, {0, cols}}, to_rows, to_cols);
}

kernels::ConstMatrix Parameters::large_columns(std::string_view name, std::int64_t rows, std::int64_t cols,
                                               Range part) {
  return large_tile(name, {rows, cols, {0, rows}, part}, rows, part.count);
}

kernels::ConstMatrix Parameters::large_tile(std::string_view name, const Tile& tile, std::int64_t to_rows,
                                            std::int64_t to_cols) {
  const std::size_t before = owned_.size();
  const kernels::ConstMatrix wide = tile_of(name, tile, to_rows, to_cols);
  return quantization_ == Quantization::none ? wide : quantized(wide, before);
}

kernels::ConstMatrix Parameters::quantized(kernels::ConstMatrix wide, std::size_t before) {
  if (!kernels::has_e4m3_products(stream_))
    throw kernels::DeviceError(
        "FP8 needs cuBLASLt 12.9 or later and a Hopper GPU: there are no products with a scale a row here");
  kernels::Buffer rounded(stream_, kernels::e4m3_bytes(wide.rows, wide.cols));
  const kernels::Matrix result = kernels::e4m3_matrix(rounded.data(), wide.rows, wide.cols);
  kernels::quantize_rows(stream_, wide, result);
  for (; owned_.size() > before; owned_.pop_back()) owned_bytes_ -= owned_.back().bytes();
  owned_bytes_ += rounded.bytes();
  owned_.push_back(std::move(rounded));
  return result;
}

kernels::ConstMatrix Parameters::padded(std::string_view name, std::int64_t rows, std::int64_t cols,
                                        std::int64_t to_rows, std::int64_t to_cols) {
  return tile_of(name, {rows, cols, {0, rows}, {0, cols}}, to_rows, to_cols);
}

kernels::ConstMatrix Parameters::tile_of(std::string_view name, const Tile& tile, std::int64_t to_rows,
                                         std::int64_t to_cols) {
  if (weights_ == nullptr) return made_up(name, tile, to_rows, to_cols, compute_);
  const std::array<std::int64_t, 2> shape{tile.file_rows, tile.file_cols};
  return placed(weights_->get(name, shape), tile, to_rows, to_cols);
}

kernels::ConstMatrix Parameters::folded(std::string_view name, std::initializer_list<std::int64_t> shape) {
  const std::int64_t rows = *shape.begin();
  const std::int64_t cols =
      std::accumulate(shape.begin() + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  const Tile whole{rows, cols, {0, rows}, {0, cols}};
  if (weights_ == nullptr) return made_up(name, whole, rows, cols, compute_);
  return placed(weights_->get(name, std::span(shape.begin(), shape.size())), whole, rows, cols);
}

kernels::ConstMatrix Parameters::table(std::string_view name, std::int64_t rows, std::int64_t cols) {
  if (weights_ == nullptr) return made_up(name, {rows, cols, {0, rows}, {0, cols}}, rows, cols, compute_);
  const std::array<std::int64_t, 2> shape{rows, cols};
  const TensorView& tensor = weights_->get(name, shape);
  const std::byte* data = tensor.data;
  if (stream_.kind() != kernels::DeviceKind::cpu)
    data = keep_bytes({data, static_cast<std::size_t>(tensor.elements()) * kernels::size_of(tensor.dtype)});
  return kernels::dense(static_cast<const void*>(data), tensor.dtype, rows, cols);
}

const float* Parameters::vector(std::string_view name, std::int64_t size, std::int64_t padded) {
  return keep<float>(numbers(name, size, {0, size}, padded));
}

kernels::Bias Parameters::bias(std::string_view name, std::int64_t size, std::int64_t padded) {
  return keep_bias(numbers(name, size, {0, size}, padded));
}

kernels::Bias Parameters::keep_bias(std::span<const float> values) {
  kernels::Bias bias(keep<float>(values));
  if (stream_.kind() == kernels::DeviceKind::cpu) return bias;
  std::vector<kernels::bf16> rounded(values.size());
  std::transform(values.begin(), values.end(), rounded.begin(), kernels::to_bf16);
  bias.rounded = keep<kernels::bf16>(rounded);
  return bias;
}

std::vector<float> Parameters::numbers(std::string_view name, std::int64_t size, Range wanted,
                                       std::int64_t padded) const {
  std::vector<float> values(static_cast<std::size_t>(std::max(wanted.count, padded)));
  if (weights_ == nullptr) {
    const bool bias = name.ends_with("bias");
    for (std::int64_t i = 0; i < wanted.count; ++i)
      values[static_cast<std::size_t>(i)] =
          bias ? kMadeUpBias *
                     kernels::random_number(seed_of(name), static_cast<std::uint64_t>(wanted.first + i))
               : 1.0F;
    return values;
  }
  const std::array<std::int64_t, 1> shape{size};
  write_tile(weights_->get(name, shape), size, {0, 1}, wanted, size, kernels::DType::f32,
             reinterpret_cast<std::byte*>(values.data()));
  return values;
}

kernels::ConstMatrix Parameters::placed(const TensorView& tensor, const Tile& tile, std::int64_t to_rows,
                                        std::int64_t to_cols) {
  const std::size_t element = kernels::size_of(compute_);
  const bool as_it_is = tensor.dtype == compute_ && tile.rows.count == to_rows && tile.cols.count == to_cols;
  const bool without_gaps = tile.cols.count == tile.file_cols;
  const std::size_t bytes = static_cast<std::size_t>(to_rows * to_cols) * element;
  const std::byte* data =
      tensor.data + static_cast<std::size_t>(tile.first()) * kernels::size_of(tensor.dtype);
  if (as_it_is && stream_.kind() == kernels::DeviceKind::cpu)
    return {data, compute_, to_rows, to_cols, tile.file_cols};
  if (as_it_is && without_gaps) {
    data = keep_bytes({data, bytes});
  } else {
    std::vector<std::byte> made(bytes);
    write_tile(tensor, tile.file_cols, tile.rows, tile.cols, to_cols, compute_, made.data());
    data = keep_bytes(made);
  }
  return kernels::dense(static_cast<const void*>(data), compute_, to_rows, to_cols);
}

Projections Parameters::projections(const std::vector<Projection>& wanted, std::int64_t cols) {
  std::vector<Projections::Part> parts;
  if (stream_.kind() == kernels::DeviceKind::cpu) {
    for (const Projection& one : wanted) {
      const Tile tile{one.rows, cols, one.wanted(), {0, cols}};
      parts.push_back({large_tile(one.weight, tile, one.padded_rows, cols), {}});
      if (!one.bias.empty())
        parts.back().bias = keep_bias(numbers(one.bias, one.rows, one.wanted(), one.padded_rows));
    }
    return {std::move(parts), false};
  }
  std::int64_t rows = 0;
  std::vector<float> biases;
  for (const Projection& one : wanted) {
    rows += one.padded_rows;
    if (one.bias.empty()) continue;
    const std::vector<float> values = numbers(one.bias, one.rows, one.wanted(), one.padded_rows);
    biases.insert(biases.end(), values.begin(), values.end());
  }
  const kernels::Bias bias = biases.empty() ? kernels::Bias{} : keep_bias(biases);
  const std::size_t before = owned_.size();
  const auto bytes = static_cast<std::size_t>(rows * cols) * kernels::size_of(compute_);
  const kernels::Buffer& buffer = owned_.emplace_back(stream_, bytes);
  owned_bytes_ += bytes;
  const kernels::Matrix wide = kernels::dense(buffer.data(), compute_, rows, cols);
  std::int64_t row = 0;
  for (const Projection& one : wanted) {
    place(one, wide.rows_from(row, one.padded_rows));
    row += one.padded_rows;
  }
  const kernels::ConstMatrix all = quantization_ == Quantization::none ? wide : quantized(wide, before);
  row = 0;
  for (const Projection& one : wanted) {
    parts.push_back({all.rows_from(row, one.padded_rows), {}});
    if (!one.bias.empty()) parts.back().bias = {bias.values + row, bias.rounded + row};
    row += one.padded_rows;
  }
  return {std::move(parts), true};
}

void Parameters::place(const Projection& wanted, kernels::Matrix to) {
  const Tile tile{wanted.rows, to.cols, wanted.wanted(), {0, to.cols}};
  if (weights_ == nullptr) return make_up(wanted.weight, tile, to);
  const std::array<std::int64_t, 2> shape{wanted.rows, to.cols};
  std::vector<std::byte> values(static_cast<std::size_t>(to.rows * to.cols) * kernels::size_of(compute_));
  write_tile(weights_->get(wanted.weight, shape), to.cols, tile.rows, tile.cols, to.cols, compute_,
             values.data());
  kernels::upload(stream_, to.data, values.data(), values.size());
}

kernels::ConstMatrix Parameters::made_up(std::string_view name, const Tile& tile, std::int64_t to_rows,
                                         std::int64_t to_cols, kernels::DType dtype) {
  const auto bytes = static_cast<std::size_t>(to_rows * to_cols) * kernels::size_of(dtype);
  const kernels::Buffer& buffer = owned_.emplace_back(stream_, bytes);
  owned_bytes_ += bytes;
  const kernels::Matrix whole = kernels::dense(buffer.data(), dtype, to_rows, to_cols);
  make_up(name, tile, whole);
  return whole;
}

void Parameters::make_up(std::string_view name, const Tile& tile, kernels::Matrix to) {
  kernels::Matrix part = to.columns(0, tile.cols.count);
  part.rows = tile.rows.count;
  if (part.rows != to.rows || part.cols != to.cols) kernels::fill_random(stream_, to, 0, 0);
  kernels::fill_random(stream_, part, seed_of(name), made_up_scale(tile.file_cols),
                       {.first = tile.first(), .pitch = tile.file_cols});
}

std::uint64_t Parameters::seed_of(std::string_view name) const {
  // Every tensor has numbers of its own, on every machine the same.
  return base::fnv1a(name, base::kFnv1aStart ^ seed_);
}

const std::byte* Parameters::keep_bytes(std::span<const std::byte> bytes) {
  const kernels::Buffer& buffer = owned_.emplace_back(stream_, bytes.size());
  kernels::upload(stream_, buffer.data(), bytes.data(), bytes.size());
  owned_bytes_ += bytes.size();
  return buffer.data();
}

}  // namespace vigil::model
