// Borrowed matrices: what operations read and write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/device/dtype.h"

namespace vigil::kernels {

/// A borrowed row-major matrix. `stride` is the distance of rows in elements, at least `cols`. `scales`, one
/// a row, are what the elements of a row of e4m3 are multiplied by (kernels/quantize); null for other types.
struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  const float* scales = nullptr;

  template <typename T>
  const T* row(std::int64_t i) const {
    return static_cast<const T*>(data) + i * stride;
  }

  /// Rows [begin, begin + count).
  ConstMatrix rows_from(std::int64_t begin, std::int64_t count) const {
    const auto* start =
        static_cast<const std::byte*>(data) + static_cast<std::size_t>(begin * stride) * size_of(dtype);
    return {start, dtype, count, cols, stride, scales == nullptr ? nullptr : scales + begin};
  }
};

struct Matrix {
  void* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;
  float* scales = nullptr;

  template <typename T>
  T* row(std::int64_t i) const {
    return static_cast<T*>(data) + i * stride;
  }

  // Reading is what a writable matrix can do too.
  operator ConstMatrix() const {
    return {data, dtype, rows, cols, stride, scales};
  }  // NOLINT(google-explicit-constructor)

  /// Rows [begin, begin + count).
  Matrix rows_from(std::int64_t begin, std::int64_t count) const {
    auto* start = static_cast<std::byte*>(data) + static_cast<std::size_t>(begin * stride) * size_of(dtype);
    return {start, dtype, count, cols, stride, scales == nullptr ? nullptr : scales + begin};
  }

  /// Columns [begin, begin + count) of all rows.
  Matrix columns(std::int64_t begin, std::int64_t count) const {
    auto* start = static_cast<std::byte*>(data) + static_cast<std::size_t>(begin) * size_of(dtype);
    return {start, dtype, rows, count, stride, scales};
  }
};

/// A matrix without gaps between rows.
inline Matrix dense(void* data, DType dtype, std::int64_t rows, std::int64_t cols) {
  return {data, dtype, rows, cols, cols, nullptr};
}
inline ConstMatrix dense(const void* data, DType dtype, std::int64_t rows, std::int64_t cols) {
  return {data, dtype, rows, cols, cols, nullptr};
}

}  // namespace vigil::kernels
