// Products of E4M3 against sums of the same elements in double precision.
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "kernels/device/error.h"
#include "kernels/linear/linear.h"
#include "kernels/linear/linear_reference.h"
#include "tests/kernels/e4m3_matrix.h"

namespace vigil::kernels {
namespace {

struct Shape {
  std::int64_t m, k, n;
};

/// What sums may be off by, of the size of what is added up: f32 on the CPU, what Hopper's matrix units keep
/// on a GPU.
double summing() {
  return tests_on_gpu() ? 0x1p-11 : 4e-6;
}
constexpr double kActivating = 4e-6;

struct Also {
  bool bias = false;
  Activation activation = Activation::none;
  bool multiply = false;
  bool accumulate = false;
};

/// Runs `linear` on x, which is E4M3 or becomes it, and compares every element with the reference.
void expect_reference(DType out_type, Shape shape, std::uint64_t seed, Also also,
                      bool rounded_before = true) {
  Random random(seed);
  const TestMatrix numbers = TestMatrix::random(DType::f32, shape.m, shape.k, random, 2);
  const E4m3Matrix x = E4m3Matrix::rounded(numbers);
  const E4m3Matrix w = E4m3Matrix::random(shape.n, shape.k, random, 3);
  const TestMatrix gate = TestMatrix::random(out_type, shape.m, shape.n, random, 2, 1);
  TestMatrix added = TestMatrix::random(DType::f32, 1, shape.n, random, 3);
  TestMatrix added_rounded(DType::bf16, 1, shape.n);
  for (std::int64_t j = 0; j < shape.n; ++j) {
    added_rounded.set(0, j, added.get(0, j));
    added.set(0, j, added_rounded.get(0, j));
  }
  TestMatrix out(out_type, shape.m, shape.n, 8);
  const TestMatrix before = TestMatrix::random(out_type, shape.m, shape.n, random, 5);
  if (also.accumulate)
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j) out.set(i, j, before.get(i, j));

  LinearOptions options;
  options.activation = also.activation;
  options.accumulate = also.accumulate;
  if (also.bias) options.bias = added.view().row<float>(0);
  if (also.multiply) options.multiply = gate.view();
  {
    Stream stream = test_stream(2);
    const OnDevice added_there(stream, added), rounded_there(stream, added_rounded), gate_there(stream, gate);
    LinearOptions there = options;
    if (also.bias) there.bias = {added_there.numbers(), rounded_there.view().row<bf16>(0)};
    if (also.multiply) there.multiply = gate_there;
    OnDevice out_there(stream, out);
    const E4m3OnDevice w_there(stream, w);
    if (rounded_before) {
      linear(stream, E4m3OnDevice(stream, x), w_there, out_there, there);
    } else {
      linear(stream, OnDevice(stream, numbers), w_there, out_there, there);
    }
    out_there.fetch();
  }

  const bool twice = tests_on_gpu() && out_type == DType::bf16 &&
                     (also.bias || also.multiply || also.activation != Activation::none);
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t j = 0; j < shape.n; ++j) {
      const auto expected = reference::linear(x.view(), w.view(), i, j, options, before.get(i, j));
      const double gate_size = also.multiply ? std::abs(double{gate.get(i, j)}) : 1.0;
      const double tolerance =
          summing() * expected.magnitude +
          (also.activation == Activation::none ? 0.0 : kActivating * gate_size) +
          (out_type == DType::bf16 ? rounding_of(DType::bf16) * 1.01 * std::abs(expected.value) : 0.0) +
          (twice ? 1.2 * rounding_of(DType::bf16) * expected.magnitude : 0.0);
      ASSERT_NEAR(out.get(i, j), expected.value, tolerance)
          << "element " << i << ", " << j << " of [" << shape.m << ", " << shape.k << "] x [" << shape.n
          << ", " << shape.k << "]";
    }
  EXPECT_TRUE(out.gaps_untouched());
}

class LinearE4m3Test : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, LinearE4m3Test, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(LinearE4m3Test, AgreesWithTheReferenceAtAwkwardSizes) {
  std::uint64_t seed = 1;
  // Few rows, many rows, shapes that cuBLASLt takes and such as it refuses.
  for (const Shape shape : {Shape{1, 1, 1},
                            {1, 7, 3},
                            {1, 140, 331},
                            {2, 16, 3},
                            {5, 13, 17},
                            {8, 100, 40},
                            {9, 48, 33},
                            {16, 272, 64},
                            {17, 20, 1},
                            {31, 33, 29},
                            {63, 64, 65},
                            {65, 64, 64},
                            {128, 127, 96},
                            {33, 3584, 128},
                            {40, 8200, 48},
                            {257, 61, 24}})
    for (const bool bias : {false, true}) expect_reference(GetParam(), shape, seed++, {.bias = bias});
}

TEST_P(LinearE4m3Test, FewRowsOfManyWeightsAgreeToo) {
  std::uint64_t seed = 50;
  for (const Shape shape : {Shape{1, 18944, 32}, {4, 80, 17000}, {12, 96, 16400}, {16, 3584, 20}})
    expect_reference(GetParam(), shape, seed++, {.bias = true});
}

TEST_P(LinearE4m3Test, AppliesBiasThenActivationThenGate) {
  std::uint64_t seed = 100;
  for (const Shape shape : {Shape{1, 20, 7}, {6, 40, 53}, {37, 64, 64}})
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu})
      for (const bool bias : {false, true})
        for (const bool multiply : {false, true})
          expect_reference(GetParam(), shape, seed++, {bias, activation, multiply, false});
}

TEST_P(LinearE4m3Test, RoundsWhatIsNotE4m3Yet) {
  for (const Shape shape : {Shape{1, 40, 9}, {3, 3600, 64}, {70, 96, 48}, {20, 33, 7}})
    expect_reference(GetParam(), shape, 300, {.bias = true}, false);
}

TEST(LinearE4m3SumTest, AddsToWhatIsThere) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  for (const Shape shape :
       {Shape{1, 20, 7}, {1, 3592, 9}, {3, 64, 17000}, {16, 40, 53}, {67, 64, 132}, {67, 64, 131}})
    for (const bool bias : {false, true})
      expect_reference(DType::f32, shape, 200, {.bias = bias, .accumulate = true});
}

// The choice of an algorithm is kept for each shape: a later call has to read its own operands and scales.
TEST_P(LinearE4m3Test, TheSameShapeTwiceReadsItsOwnOperands) {
  for (const std::uint64_t seed : {1U, 2U, 3U})
    expect_reference(GetParam(), {40, 32, 48}, seed, {.bias = true});
}

// Neither a row of x nor a row of w that is not finite passes silently, and neither takes others along.
TEST_P(LinearE4m3Test, NotANumberStaysInItsRowAndColumn) {
  for (const std::int64_t m : {5, 40})
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Random random(1);
      TestMatrix x = TestMatrix::random(DType::f32, m, 48, random);
      TestMatrix w = TestMatrix::random(DType::f32, 32, 48, random);
      x.set(2, 30, bad);
      w.set(7, 11, bad);
      const E4m3Matrix quantized = E4m3Matrix::rounded(w);
      TestMatrix out(GetParam(), m, 32);
      Stream stream = test_stream();
      OnDevice there(stream, out);
      linear(stream, OnDevice(stream, x), E4m3OnDevice(stream, quantized), there);
      there.fetch();
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < 32; ++j)
          ASSERT_EQ(std::isnan(out.get(i, j)), i == 2 || j == 7) << i << ", " << j;
    }
}

TEST_P(LinearE4m3Test, ZerosGiveTheBias) {
  TestMatrix x(DType::f32, 20, 48), w(DType::f32, 16, 48), bias(DType::f32, 1, 16), out(GetParam(), 20, 16);
  for (std::int64_t j = 0; j < 48; ++j) {
    for (std::int64_t i = 0; i < 20; ++i) x.set(i, j, i % 2 == 0 ? 0.0F : 1.0F);
    for (std::int64_t i = 0; i < 16; ++i) w.set(i, j, i % 2 == 0 ? 0.0F : 1.0F);
  }
  for (std::int64_t j = 0; j < 16; ++j) bias.set(0, j, static_cast<float>(j));
  const E4m3Matrix quantized = E4m3Matrix::rounded(w);
  Stream stream = test_stream();
  OnDevice there(stream, out);
  const OnDevice bias_there(stream, bias);
  linear(stream, OnDevice(stream, x), E4m3OnDevice(stream, quantized), there, {.bias = bias_there.numbers()});
  there.fetch();
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < 16; ++j) {
      if (i % 2 == 0 || j % 2 == 0) {
        EXPECT_EQ(out.get(i, j), static_cast<float>(j)) << i << ", " << j;
      } else {
        EXPECT_NEAR(out.get(i, j), static_cast<float>(j) + 48.0F, 48 * summing()) << i << ", " << j;
      }
    }
}

TEST(LinearE4m3ArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);  // where there is no GPU as well
  Random random(1);
  E4m3Matrix w(4, 20);
  quantize_rows(stream, TestMatrix::random(DType::f32, 4, 20, random).view(), w.at(w.bytes().data()));
  TestMatrix x(DType::f32, 2, 20), integers(DType::f32, 2, 20), out(DType::f32, 2, 4),
      rounded(DType::bf16, 2, 4), plain(DType::f32, 4, 20);
  EXPECT_NO_THROW(
      linear(stream, TestMatrix::random(DType::f32, 2, 20, random).view(), w.view(), rounded.view()));
  ConstMatrix without = w.view();
  without.scales = nullptr;
  EXPECT_THROW(linear(stream, x.view(), without, out.view()), std::invalid_argument);
  ConstMatrix tight = w.view();
  tight.stride = 20;
  EXPECT_THROW(linear(stream, x.view(), tight, out.view()), std::invalid_argument);
  EXPECT_THROW(linear(stream, E4m3Matrix(2, 20).view(), plain.view(), out.view()), std::invalid_argument);
  Matrix bytes = x.view();
  bytes.dtype = DType::u8;
  EXPECT_THROW(linear(stream, bytes, w.view(), out.view()), std::invalid_argument);
  EXPECT_THROW(linear(stream, x.view(), w.view(), rounded.view(), {.accumulate = true}),
               std::invalid_argument);
  EXPECT_NO_THROW(
      linear(stream, TestMatrix(DType::f32, 0, 20).view(), w.view(), TestMatrix(DType::f32, 0, 4).view()));
}

}  // namespace
}  // namespace vigil::kernels
