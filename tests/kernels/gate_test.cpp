#include "kernels/linear/gate.h"

#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/e4m3_matrix.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

class GateTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, GateTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

double activated(double value, Activation activation) {
  if (activation == Activation::silu) return value / (1 + std::exp(-value));
  if (activation == Activation::gelu) return 0.5 * value * (1 + std::erf(value / std::sqrt(2.0)));
  return value;
}

// Gate and values are the halves of one matrix, as one product leaves them.
TEST_P(GateTest, MultipliesTheActivatedHalfByTheOther) {
  std::uint64_t seed = 1;
  for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu})
    for (const std::int64_t cols : {1, 7, 8, 64, 3456})
      for (const std::int64_t rows : {1, 19}) {
        Random random(seed++);
        const TestMatrix before = TestMatrix::random(GetParam(), rows, 2 * cols, random, 6);
        TestMatrix x(GetParam(), rows, 2 * cols, 3);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < 2 * cols; ++j) x.set(i, j, before.get(i, j));
        Stream stream = test_stream(2);
        OnDevice there(stream, x);
        apply_gate(stream, there.view().columns(0, cols), activation, there.view().columns(cols, cols));
        there.fetch();
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < cols; ++j) {
            const double expected = activated(before.get(i, j), activation) * before.get(i, cols + j);
            ASSERT_NEAR(x.get(i, j), expected,
                        4e-6 + (4e-6 + 1.01 * rounding_of(GetParam())) * std::abs(expected))
                << i << ", " << j;
            ASSERT_EQ(x.get(i, cols + j), before.get(i, cols + j)) << "the values stay";
          }
        EXPECT_TRUE(x.gaps_untouched());
      }
}

// For products of E4M3: as if it were multiplied, stored, and rounded afterwards.
TEST_P(GateTest, RoundsToE4m3) {
  std::uint64_t seed = 50;
  for (const std::int64_t cols : {1, 7, 8, 64, 3424, 18944, 40000})
    for (const std::int64_t rows : {1, 140}) {
      if (cols > 4000 && rows > 1 && !tests_on_gpu()) continue;  // the same code there, and slow
      Random random(seed++);
      const TestMatrix before = TestMatrix::random(GetParam(), rows, 2 * cols, random, 6);
      TestMatrix product(GetParam(), rows, cols);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j)
          product.set(
              i, j,
              static_cast<float>(activated(before.get(i, j), Activation::silu) * before.get(i, cols + j)));
      E4m3Matrix out(rows, cols);
      Stream stream = test_stream(2);
      {
        const OnDevice x(stream, before);
        E4m3OnDevice there(stream, out);
        quantized_gate(stream, x.view().columns(0, cols), Activation::silu, x.view().columns(cols, cols),
                       there);
        there.fetch();
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        float most = 0;
        for (std::int64_t j = 0; j < cols; ++j) most = std::max(most, std::abs(product.get(i, j)));
        ASSERT_NEAR(out.scale(i), most / kMostE4m3,
                    2.1 * rounding_of(GetParam()) * out.scale(i) + 1e-5 * most);
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_NEAR(out.get(i, j), product.get(i, j),
                      (0.0626 + 2.1 * rounding_of(GetParam())) * std::abs(product.get(i, j)) +
                          0x1.01p-10 * out.scale(i) + 1e-5)
              << i << ", " << j << " of [" << rows << ", " << cols << "]";
        for (std::int64_t j = cols; j < e4m3_stride(cols); ++j) ASSERT_EQ(out.code(i, j), 0);
      }
    }
}

TEST_P(GateTest, NotANumberTakesItsRowsScale) {
  Random random(2);
  TestMatrix x = TestMatrix::random(GetParam(), 3, 40, random);
  x.set(1, 39, std::nanf(""));
  E4m3Matrix out(3, 20);
  Stream stream = test_stream(2);
  const OnDevice x_there(stream, x);
  E4m3OnDevice there(stream, out);
  quantized_gate(stream, x_there.view().columns(0, 20), Activation::silu, x_there.view().columns(20, 20),
                 there);
  there.fetch();
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < 20; ++j) EXPECT_EQ(std::isnan(out.get(i, j)), i == 1);
}

TEST(GateArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix x(DType::f32, 2, 4), narrow(DType::f32, 2, 3), longer(DType::f32, 3, 4),
      rounded(DType::bf16, 2, 4);
  for (TestMatrix* other : {&narrow, &longer, &rounded})
    EXPECT_THROW(apply_gate(stream, x.view(), Activation::silu, other->view()), std::invalid_argument);
  EXPECT_THROW(quantized_gate(stream, x.view(), Activation::silu, x.view(), x.view()), std::invalid_argument);
  E4m3Matrix other(2, 5);
  EXPECT_THROW(quantized_gate(stream, x.view(), Activation::silu, x.view(), other.at(other.bytes().data())),
               std::invalid_argument);
  EXPECT_NO_THROW(apply_gate(stream, TestMatrix(DType::f32, 0, 4).view(), Activation::silu,
                             TestMatrix(DType::f32, 0, 4).view()));
}

// Beside the same product without a gate, in double precision; up to sixteen rows of bf16 have a kernel of
// their own on a GPU.
TEST_P(GateTest, AGatedProductIsBothProductsGated) {
  VIGIL_SKIP_WITHOUT(GetParam());
  std::uint64_t seed = 100;
  for (const std::int64_t rows : {1, 2, 4, 5, 9, 16, 67})
    for (const std::int64_t width : {1, 33, 96, 1300, 9001})
      for (const std::int64_t inner_size : {1, 8, 64, 100, 1032})
        for (const bool biased : {false, true}) {
          if (width > 96 && (inner_size > 100 || (rows != 1 && rows != 9))) continue;
          // So wide that a GPU's blocks take their columns in several turns.
          if ((width == 9001) != (inner_size == 64)) continue;
          Random random(seed++);
          const TestMatrix x = TestMatrix::random(GetParam(), rows, inner_size, random, 1);
          const TestMatrix w = TestMatrix::random(GetParam(), 2 * width, inner_size, random, 1);
          std::vector<float> bias;
          for (std::int64_t j = 0; j < 2 * width; ++j) bias.push_back(random.number());
          TestMatrix inner(GetParam(), rows, 2 * width, 8);
          Stream stream = test_stream(2);
          OnDevice there(stream, inner);
          const DeviceArray<float> bias_there(stream, bias);
          gated_linear(stream, OnDevice(stream, x), OnDevice(stream, w),
                       biased ? Bias(bias_there.data()) : Bias(), Activation::silu, there);
          there.fetch();
          for (std::int64_t i = 0; i < rows; ++i)
            for (std::int64_t j = 0; j < width; ++j) {
              double sums[2] = {biased ? bias[static_cast<std::size_t>(j)] : 0.0,
                                biased ? bias[static_cast<std::size_t>(width + j)] : 0.0};
              double size = 1;
              for (std::int64_t d = 0; d < inner_size; ++d)
                for (const int half : {0, 1}) {
                  const double term = double{x.get(i, d)} * double{w.get(half * width + j, d)};
                  sums[half] += term;
                  size += std::abs(term);
                }
              const double expected = activated(sums[0], Activation::silu) * sums[1];
              // Either factor may be rounded to the type, and the result is.
              const double tolerance =
                  (1e-5 + 4 * rounding_of(GetParam())) *
                      (std::abs(expected) + (1 + std::abs(sums[0])) * (1 + std::abs(sums[1]))) +
                  1e-6 * size * (1 + std::abs(sums[0]) + std::abs(sums[1]));
              ASSERT_NEAR(inner.get(i, j), expected, tolerance)
                  << rows << " rows of " << inner_size << ", " << i << ", " << j
                  << (biased ? ", biased: " : ": ") << sums[0] << " and " << sums[1];
            }
          EXPECT_TRUE(inner.gaps_untouched());
        }
}

TEST_P(GateTest, AGatedProductThatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  const auto refused = [&](const TestMatrix& x, const TestMatrix& w, TestMatrix inner) {
    EXPECT_THROW(gated_linear(stream, x.view(), w.view(), {}, Activation::silu, inner.view()),
                 std::invalid_argument);
  };
  const DType type = GetParam();
  refused(TestMatrix(other, 2, 8), TestMatrix(type, 6, 8), TestMatrix(type, 2, 6));
  refused(TestMatrix(type, 2, 8), TestMatrix(type, 6, 8), TestMatrix(other, 2, 6));
  refused(TestMatrix(type, 2, 8), TestMatrix(type, 5, 8), TestMatrix(type, 2, 5));
  refused(TestMatrix(type, 2, 8), TestMatrix(type, 6, 7), TestMatrix(type, 2, 6));
  refused(TestMatrix(type, 2, 8), TestMatrix(type, 6, 8), TestMatrix(type, 3, 6));
  refused(TestMatrix(type, 2, 8), TestMatrix(type, 6, 8), TestMatrix(type, 2, 3));
}

}  // namespace
}  // namespace vigil::kernels
