// Matrices for tests of operations: poisoned where nothing was written, with gaps between rows that have to
// stay as they were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/element.h"
#include "kernels/device/matrix.h"
#include "kernels/device/stream.h"

namespace vigil::kernels {

/// splitmix64: the same numbers on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t bits() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31U);
  }
  /// Uniform in [-1, 1).
  float number() { return static_cast<float>(static_cast<double>(bits() >> 11U) * 0x1p-52 - 1.0); }
  std::int64_t below(std::int64_t count) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(count));
  }

 private:
  std::uint64_t state_;
};

/// An owned f32 or bf16 matrix whose bytes are all 0xff at first: not a number in either type. `gap` elements
/// lie between rows, and the storage ends with the last row's last element, so that a sanitizer sees what
/// reads past it.
class TestMatrix {
 public:
  TestMatrix(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t gap = 0)
      : dtype_(dtype),
        rows_(rows),
        cols_(cols),
        stride_(cols + gap),
        bytes_(static_cast<std::size_t>(rows == 0 ? 0 : rows * stride_ - gap) * size_of(dtype),
               std::byte{0xff}) {}

  /// Uniform numbers in [-scale, scale), rounded to the matrix's type.
  static TestMatrix random(DType dtype, std::int64_t rows, std::int64_t cols, Random& random, float scale = 1,
                           std::int64_t gap = 0) {
    TestMatrix result(dtype, rows, cols, gap);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < cols; ++j) result.set(i, j, scale * random.number());
    return result;
  }

  Matrix view() { return {bytes_.data(), dtype_, rows_, cols_, stride_}; }
  ConstMatrix view() const { return {bytes_.data(), dtype_, rows_, cols_, stride_}; }

  float get(std::int64_t i, std::int64_t j) const { return element(view(), i, j); }
  void set(std::int64_t i, std::int64_t j, float value) {
    if (dtype_ == DType::f32) {
      view().row<float>(i)[j] = value;
    } else {
      view().row<bf16>(i)[j] = to_bf16(value);
    }
  }

  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  const std::vector<std::byte>& bytes() const { return bytes_; }

  /// Whether the elements between rows still hold what they held at first.
  bool gaps_untouched() const {
    const std::size_t width = size_of(dtype_);
    for (std::int64_t i = 0; i + 1 < rows_; ++i)
      for (std::size_t at = static_cast<std::size_t>(i * stride_ + cols_) * width;
           at < static_cast<std::size_t>((i + 1) * stride_) * width; ++at)
        if (bytes_[at] != std::byte{0xff}) return false;
    return true;
  }
  /// Whether a row was never written.
  bool row_untouched(std::int64_t i) const {
    const std::size_t width = size_of(dtype_);
    const auto begin = static_cast<std::size_t>(i * stride_) * width;
    for (std::size_t at = begin; at < begin + static_cast<std::size_t>(cols_) * width; ++at)
      if (bytes_[at] != std::byte{0xff}) return false;
    return true;
  }

 private:
  DType dtype_;
  std::int64_t rows_, cols_, stride_;
  std::vector<std::byte> bytes_;
};

/// Half a unit in the last place, relative: the error of storing a number in this type.
inline double rounding_of(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

}  // namespace vigil::kernels
