#include "engine/model/parameters.h"

#include <array>
#include <span>
#include <stdexcept>

namespace vigil::model {
namespace {

template <typename T>
const T* elements_of(const TensorView& tensor) {
  return reinterpret_cast<const T*>(tensor.data);
}

/// Calls `write(i, value)` for all elements, with the choice of type outside of the loop.
template <typename Write>
void for_each_element(const TensorView& tensor, const Write& write) {
  const auto all = [&](const auto* elements) {
    for (std::int64_t i = 0; i < tensor.elements(); ++i) write(i, kernels::to_float(elements[i]));
  };
  switch (tensor.dtype) {
    case kernels::DType::f32:
      return all(elements_of<float>(tensor));
    case kernels::DType::bf16:
      return all(elements_of<kernels::bf16>(tensor));
    case kernels::DType::f16:
      return all(elements_of<kernels::f16>(tensor));
    case kernels::DType::i32:
    case kernels::DType::u8:
      break;
  }
  throw std::logic_error("parameters are floating-point numbers");
}

}  // namespace

kernels::ConstMatrix Parameters::matrix(std::string_view name, std::int64_t rows, std::int64_t cols) {
  const std::array<std::int64_t, 2> shape{rows, cols};
  return converted(weights_->get(name, shape), rows, cols);
}

kernels::ConstMatrix Parameters::folded(std::string_view name, std::initializer_list<std::int64_t> shape) {
  const TensorView& whole = tensor(name, shape);
  const std::int64_t rows = *shape.begin();
  return converted(whole, rows, whole.elements() / rows);
}

const TensorView& Parameters::tensor(std::string_view name, std::initializer_list<std::int64_t> shape) const {
  return weights_->get(name, std::span(shape.begin(), shape.size()));
}

std::vector<float> Parameters::vector(std::string_view name, std::int64_t size) const {
  const std::array<std::int64_t, 1> shape{size};
  std::vector<float> values(static_cast<std::size_t>(size));
  for_each_element(weights_->get(name, shape),
                   [&](std::int64_t i, float value) { values[static_cast<std::size_t>(i)] = value; });
  return values;
}

kernels::ConstMatrix Parameters::converted(const TensorView& tensor, std::int64_t rows, std::int64_t cols) {
  if (tensor.dtype == compute_)
    return kernels::dense(static_cast<const void*>(tensor.data), compute_, rows, cols);
  const auto bytes = static_cast<std::size_t>(tensor.elements()) * kernels::size_of(compute_);
  kernels::Buffer& buffer = owned_.emplace_back(*stream_, bytes);
  converted_bytes_ += bytes;
  if (compute_ == kernels::DType::f32) {
    for_each_element(tensor, [to = buffer.as<float>()](std::int64_t i, float value) { to[i] = value; });
  } else {
    for_each_element(tensor, [to = buffer.as<kernels::bf16>()](std::int64_t i, float value) {
      to[i] = kernels::to_bf16(value);
    });
  }
  return kernels::dense(static_cast<const void*>(buffer.data()), compute_, rows, cols);
}

float element(const TensorView& tensor, std::int64_t i) {
  switch (tensor.dtype) {
    case kernels::DType::f32:
      return elements_of<float>(tensor)[i];
    case kernels::DType::bf16:
      return kernels::to_float(elements_of<kernels::bf16>(tensor)[i]);
    case kernels::DType::f16:
      return kernels::to_float(elements_of<kernels::f16>(tensor)[i]);
    case kernels::DType::i32:
    case kernels::DType::u8:
      break;
  }
  throw std::logic_error("parameters are floating-point numbers");
}

}  // namespace vigil::model
