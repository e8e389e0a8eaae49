#include "kernels/rms_norm/rms_norm.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/rms_norm/rms_norm_reference.h"
#include "tests/kernels/e4m3_matrix.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

// Adding up thousands of squares in f32 (one after the other where nothing is vectorised), the root, and two
// products.
constexpr double kTolerance = 2e-6;

/// Runs `rms_norm` on the device under test.
void norm(Stream& stream, const TestMatrix& x, const TestMatrix& weight, float epsilon, TestMatrix& out) {
  OnDevice there(stream, out);
  rms_norm(stream, OnDevice(stream, x), OnDevice(stream, weight).numbers(), epsilon, there);
  there.fetch();
}

TestMatrix vector_of(std::int64_t cols, float value) {
  TestMatrix vector(DType::f32, 1, cols);
  for (std::int64_t j = 0; j < cols; ++j) vector.set(0, j, value);
  return vector;
}

class RmsNormTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, RmsNormTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(RmsNormTest, AgreesWithTheReferenceAtAwkwardSizes) {
  std::uint64_t seed = 1;
  for (const std::int64_t rows : {1, 2, 63, 64, 65, 131})
    for (const std::int64_t cols : {1, 7, 20, 64, 140, 1280, 3584}) {
      Random random(seed++);
      const TestMatrix x = TestMatrix::random(DType::f32, rows, cols, random, 3, 3);
      const TestMatrix weight = TestMatrix::random(DType::f32, 1, cols, random, 2);
      TestMatrix out(GetParam(), rows, cols, 5);
      Stream stream = test_stream(2);
      norm(stream, x, weight, 1e-5F, out);
      for (std::int64_t i = 0; i < rows; ++i) {
        const auto expected = reference::rms_norm(x.view(), weight.view().row<float>(0), 1e-5F, i);
        for (std::int64_t j = 0; j < cols; ++j) {
          const double value = expected[static_cast<std::size_t>(j)];
          ASSERT_NEAR(out.get(i, j), value, (kTolerance + rounding_of(GetParam())) * std::abs(value) + 1e-30)
              << i << ", " << j << " of [" << rows << ", " << cols << "]";
        }
      }
      EXPECT_TRUE(out.gaps_untouched());
    }
}

// The mean of tiny squares vanishes beside epsilon; that of zeros is nothing but epsilon.
TEST_P(RmsNormTest, EpsilonHoldsUpZeroAndTinyRows) {
  TestMatrix x(DType::f32, 2, 5);
  const TestMatrix weight = vector_of(5, 2.0F);
  for (std::int64_t j = 0; j < 5; ++j) {
    x.set(0, j, 0.0F);
    x.set(1, j, 1e-12F);
  }
  TestMatrix out(GetParam(), 2, 5);
  Stream stream = test_stream(1);
  norm(stream, x, weight, 1e-6F, out);
  for (std::int64_t j = 0; j < 5; ++j) {
    EXPECT_EQ(out.get(0, j), 0.0F);
    EXPECT_NEAR(out.get(1, j), 2e-9, 2e-9 * (1e-5 + rounding_of(GetParam())));
  }
}

// For products of E4M3: the same as rounding afterwards, but in one go.
TEST(RmsNormE4m3Test, RoundsTheNormedRow) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  std::uint64_t seed = 1;
  for (const std::int64_t rows : {1, 3, 140})
    for (const std::int64_t cols : {1, 7, 20, 140, 3584, 5120, 8192}) {
      Random random(seed++);
      const TestMatrix x = TestMatrix::random(DType::f32, rows, cols, random, 3, cols % 4 == 0 ? 4 : 3);
      const TestMatrix weight = TestMatrix::random(DType::f32, 1, cols, random, 2);
      TestMatrix normed(DType::f32, rows, cols);
      E4m3Matrix out(rows, cols);
      Stream stream = test_stream(2);
      norm(stream, x, weight, 1e-5F, normed);
      {
        E4m3OnDevice there(stream, out);
        rms_norm(stream, OnDevice(stream, x), OnDevice(stream, weight).numbers(), 1e-5F, there);
        there.fetch();
      }
      const E4m3Matrix expected = E4m3Matrix::rounded(normed);
      for (std::int64_t i = 0; i < rows; ++i) {
        ASSERT_NEAR(out.scale(i), expected.scale(i), 2e-6 * expected.scale(i));
        for (std::int64_t j = 0; j < cols; ++j) {
          // Sums in another order may move a number over the middle between two codes.
          ASSERT_NEAR(out.get(i, j), normed.get(i, j),
                      0.0626 * std::abs(normed.get(i, j)) + 0x1.01p-10 * expected.scale(i))
              << i << ", " << j << " of [" << rows << ", " << cols << "]";
        }
        for (std::int64_t j = cols; j < e4m3_stride(cols); ++j) ASSERT_EQ(out.code(i, j), 0);
      }
    }
}

TEST(RmsNormE4m3Test, NotANumberStaysInItsRow) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(3);
  TestMatrix x = TestMatrix::random(DType::f32, 3, 21, random);
  const TestMatrix weight = vector_of(21, 1.0F);
  x.set(1, 20, std::nanf(""));
  E4m3Matrix out(3, 21);
  Stream stream = test_stream(1);
  E4m3OnDevice there(stream, out);
  rms_norm(stream, OnDevice(stream, x), OnDevice(stream, weight).numbers(), 1e-6F, there);
  there.fetch();
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 21; ++j) EXPECT_EQ(std::isnan(out.get(i, j)), i == 1);
}

TEST(RmsNormInPlaceTest, TheInputMayBeTheOutput) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(7);
  TestMatrix x = TestMatrix::random(DType::f32, 70, 33, random, 1, 2);
  const TestMatrix weight = TestMatrix::random(DType::f32, 1, 33, random);
  TestMatrix apart(DType::f32, 70, 33);
  Stream stream = test_stream(2);
  norm(stream, x, weight, 1e-6F, apart);
  OnDevice there(stream, x);
  rms_norm(stream, there, OnDevice(stream, weight).numbers(), 1e-6F, there);
  there.fetch();
  for (std::int64_t i = 0; i < 70; ++i)
    for (std::int64_t j = 0; j < 33; ++j) ASSERT_EQ(x.get(i, j), apart.get(i, j));
}

TEST_P(RmsNormTest, NotANumberStaysInItsRow) {
  Random random(3);
  TestMatrix x = TestMatrix::random(DType::f32, 3, 21, random);
  const TestMatrix weight = vector_of(21, 1.0F);
  x.set(1, 20, std::nanf(""));
  TestMatrix out(GetParam(), 3, 21);
  Stream stream = test_stream(1);
  norm(stream, x, weight, 1e-6F, out);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 21; ++j) EXPECT_EQ(std::isnan(out.get(i, j)), i == 1);
}

TEST_P(RmsNormTest, NoRowsWriteNothing) {
  const TestMatrix x(DType::f32, 0, 8);
  TestMatrix out(GetParam(), 0, 8);
  const std::vector<float> weight(8, 1.0F);
  Stream stream = test_stream(1);
  EXPECT_NO_THROW(rms_norm(stream, x.view(), weight.data(), 1e-6F, out.view()));
}

TEST(RmsNormArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  const std::vector<float> weight(8, 1.0F);
  TestMatrix x(DType::f32, 2, 4), x16(DType::bf16, 2, 4), rows(DType::f32, 3, 4), cols(DType::f32, 2, 5),
      out(DType::f32, 2, 4);
  EXPECT_THROW(rms_norm(stream, x16.view(), weight.data(), 1e-6F, out.view()), std::invalid_argument);
  EXPECT_THROW(rms_norm(stream, x.view(), weight.data(), 1e-6F, rows.view()), std::invalid_argument);
  EXPECT_THROW(rms_norm(stream, x.view(), weight.data(), 1e-6F, cols.view()), std::invalid_argument);
  Matrix integers = out.view();
  integers.dtype = DType::i32;
  EXPECT_THROW(rms_norm(stream, x.view(), weight.data(), 1e-6F, integers), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
