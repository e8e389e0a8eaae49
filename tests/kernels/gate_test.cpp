#include "kernels/linear/gate.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

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

TEST(GateArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix x(DType::f32, 2, 4), narrow(DType::f32, 2, 3), longer(DType::f32, 3, 4),
      rounded(DType::bf16, 2, 4);
  for (TestMatrix* other : {&narrow, &longer, &rounded})
    EXPECT_THROW(apply_gate(stream, x.view(), Activation::silu, other->view()), std::invalid_argument);
  EXPECT_NO_THROW(apply_gate(stream, TestMatrix(DType::f32, 0, 4).view(), Activation::silu,
                             TestMatrix(DType::f32, 0, 4).view()));
}

}  // namespace
}  // namespace vigil::kernels
