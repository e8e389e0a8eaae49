// Matrices of E4M3 for tests: elements and scales of their own, in memory that ends with them.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/quantize/quantize.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {

/// All bytes are 0xff at first: not a number, neither as an element nor as a scale.
class E4m3Matrix {
 public:
  E4m3Matrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols), bytes_(e4m3_bytes(rows, cols), std::byte{0xff}) {}

  /// Uniform numbers in [-scale, scale) of which the device under test makes E4M3.
  static E4m3Matrix random(std::int64_t rows, std::int64_t cols, Random& random, float scale = 1) {
    return rounded(TestMatrix::random(DType::f32, rows, cols, random, scale));
  }
  static E4m3Matrix rounded(const TestMatrix& x) {
    E4m3Matrix result(x.rows(), x.cols());
    Stream stream = test_stream();
    Mirror there(stream, result.bytes());
    quantize_rows(stream, OnDevice(stream, x), result.at(there.data()));
    there.fetch();
    return result;
  }

  const std::vector<std::byte>& bytes() const { return bytes_; }
  std::vector<std::byte>& bytes() { return bytes_; }
  /// The matrix in a copy of `bytes`.
  Matrix at(std::byte* memory) const { return e4m3_matrix(memory, rows_, cols_); }
  ConstMatrix view() const { return at(const_cast<std::byte*>(bytes_.data())); }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::uint8_t code(std::int64_t i, std::int64_t j) const { return view().row<e4m3>(i)[j].bits; }
  float scale(std::int64_t i) const { return view().scales[i]; }
  /// Element times scale.
  float get(std::int64_t i, std::int64_t j) const { return element(view(), i, j); }

 private:
  std::int64_t rows_, cols_;
  std::vector<std::byte> bytes_;
};

/// An E4m3Matrix on the stream's device.
class E4m3OnDevice {
 public:
  E4m3OnDevice(const Stream& stream, const E4m3Matrix& host) : host_(&host), mirror_(stream, host.bytes()) {}
  operator Matrix() const { return host_->at(mirror_.data()); }       // NOLINT(google-explicit-constructor)
  operator ConstMatrix() const { return host_->at(mirror_.data()); }  // NOLINT(google-explicit-constructor)
  void fetch() { mirror_.fetch(); }

 private:
  const E4m3Matrix* host_;
  Mirror mirror_;
};

}  // namespace vigil::kernels
