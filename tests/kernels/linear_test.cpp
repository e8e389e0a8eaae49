#include "kernels/linear/linear.h"

#include <cmath>
#include <ctime>
#include <functional>
#include <stdexcept>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "kernels/device/product_time.h"
#include "kernels/linear/linear_reference.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

// Adding up in f32 in any order, and the processor's own exponential in GELU and SiLU.
constexpr double kSumming = 4e-6;
constexpr double kActivating = 4e-6;

struct Shape {
  std::int64_t m, k, n;
};

struct Types {
  DType in, out;
};

/// Runs `linear` on matrices with gaps and compares every element with the reference.
void expect_reference(Types types, Shape shape, std::uint64_t seed, bool bias, Activation activation,
                      bool multiply, bool accumulate, int threads = 2) {
  Random random(seed);
  // Rows of whole packs keep their alignment, which some implementations ask for.
  const bool packs = shape.k % 8 == 0;
  const TestMatrix x = TestMatrix::random(types.in, shape.m, shape.k, random, 1, packs ? 8 : 3);
  const TestMatrix w = TestMatrix::random(types.in, shape.n, shape.k, random, 1, packs ? 16 : 5);
  const TestMatrix gate = TestMatrix::random(types.out, shape.m, shape.n, random, 2, 1);
  // Numbers that bf16 holds, so that a bias has one value in both types.
  TestMatrix added = TestMatrix::random(DType::f32, 1, shape.n, random, 3);
  TestMatrix rounded(DType::bf16, 1, shape.n);
  for (std::int64_t j = 0; j < shape.n; ++j) {
    rounded.set(0, j, added.get(0, j));
    added.set(0, j, rounded.get(0, j));
  }
  TestMatrix out(types.out, shape.m, shape.n, 2);
  const TestMatrix before = TestMatrix::random(types.out, shape.m, shape.n, random, 5);
  if (accumulate)
    for (std::int64_t i = 0; i < shape.m; ++i)
      for (std::int64_t j = 0; j < shape.n; ++j) out.set(i, j, before.get(i, j));

  LinearOptions options;
  options.activation = activation;
  options.accumulate = accumulate;
  if (bias) options.bias = added.view().row<float>(0);
  if (multiply) options.multiply = gate.view();
  {
    Stream stream = test_stream(threads);
    const OnDevice added_there(stream, added);
    const OnDevice rounded_there(stream, rounded);
    const OnDevice gate_there(stream, gate);
    LinearOptions there = options;
    if (bias) there.bias = {added_there.numbers(), rounded_there.view().row<bf16>(0)};
    if (multiply) there.multiply = gate_there;
    OnDevice out_there(stream, out);
    linear(stream, OnDevice(stream, x), OnDevice(stream, w), out_there, there);
    out_there.fetch();
  }

  // A GPU may round the product before what follows it.
  const bool twice =
      tests_on_gpu() && types.out == DType::bf16 && (bias || activation != Activation::none || multiply);
  for (std::int64_t i = 0; i < shape.m; ++i)
    for (std::int64_t j = 0; j < shape.n; ++j) {
      const auto expected = reference::linear(x.view(), w.view(), i, j, options, before.get(i, j));
      const double gate_size = multiply ? std::abs(double{gate.get(i, j)}) : 1.0;
      const double tolerance =
          kSumming * expected.magnitude + (activation == Activation::none ? 0.0 : kActivating * gate_size) +
          (types.out == DType::bf16 ? rounding_of(DType::bf16) * 1.01 * std::abs(expected.value) : 0.0) +
          (twice ? 1.2 * rounding_of(DType::bf16) * expected.magnitude : 0.0);
      ASSERT_NEAR(out.get(i, j), expected.value, tolerance)
          << "element " << i << ", " << j << " of [" << shape.m << ", " << shape.k << "] x [" << shape.n
          << ", " << shape.k << "]";
    }
  EXPECT_TRUE(out.gaps_untouched());
}

class LinearTest : public ::testing::TestWithParam<Types> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT(GetParam().in); }
};

INSTANTIATE_TEST_SUITE_P(Types, LinearTest,
                         ::testing::Values(Types{DType::f32, DType::f32}, Types{DType::bf16, DType::f32},
                                           Types{DType::bf16, DType::bf16}),
                         [](const auto& types) {
                           return std::string(name_of(types.param.in)) + "_to_" + name_of(types.param.out);
                         });

TEST_P(LinearTest, AgreesWithTheReferenceAtAwkwardSizes) {
  std::uint64_t seed = 1;
  for (const Shape shape : {Shape{1, 1, 1},
                            {1, 7, 1},
                            {1, 140, 331},
                            {2, 1, 3},
                            {5, 13, 17},
                            {17, 20, 1},
                            {31, 33, 29},
                            {63, 64, 65},
                            {65, 64, 63},
                            {128, 127, 96},
                            {3, 1177, 2},
                            {257, 61, 19}}) {
    expect_reference(GetParam(), shape, seed++, false, Activation::none, false, false);
    expect_reference(GetParam(), shape, seed++, true, Activation::none, false, false);
  }
}

TEST_P(LinearTest, AppliesBiasThenActivationThenGate) {
  std::uint64_t seed = 100;
  for (const Shape shape : {Shape{1, 20, 7}, {6, 40, 53}, {37, 64, 64}})
    for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu})
      for (const bool bias : {false, true})
        for (const bool multiply : {false, true})
          expect_reference(GetParam(), shape, seed++, bias, activation, multiply, false);
}

// As in decoding, where a GPU has an implementation of its own.
TEST_P(LinearTest, FewRowsAgreeToo) {
  std::uint64_t seed = 400;
  for (const Shape shape : {Shape{1, 8, 1},
                            {1, 3584, 17},
                            {2, 264, 130},
                            {3, 256, 8200},
                            {4, 1000, 33},
                            {4, 2368, 6},
                            {5, 64, 20},
                            {8, 2056, 300},
                            {9, 4104, 150},
                            {12, 3584, 17},
                            {16, 520, 2400},
                            {17, 520, 40},
                            // So wide that a GPU's blocks take their columns in several turns.
                            {2, 64, 20000},
                            {12, 264, 17001}})
    for (const bool bias : {false, true})
      expect_reference(GetParam(), shape, seed++, bias, Activation::none, false, false);
}

// Weights pass through memory that others have used, in pieces of which the last one is short.
TEST_P(LinearTest, WeightsThatAreNotNumbersStayInTheirColumns) {
  for (const std::int64_t m : {1, 5, 12}) {
    Random random(1);
    const TestMatrix x = TestMatrix::random(GetParam().in, m, 2056, random);
    TestMatrix w = TestMatrix::random(GetParam().in, 2400, 2056, random);
    const auto bad = [](std::int64_t row) { return row % 50 == 7; };
    for (std::int64_t i = 0; i < 2400; ++i)
      for (std::int64_t j = 0; bad(i) && j < 2056; ++j) w.set(i, j, std::nanf(""));
    TestMatrix out(GetParam().out, m, 2400);
    Stream stream = test_stream();
    OnDevice there(stream, out);
    linear(stream, OnDevice(stream, x), OnDevice(stream, w), there);
    there.fetch();
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < 2400; ++j)
        ASSERT_EQ(std::isnan(out.get(i, j)), bad(j)) << i << ", " << j << " of " << m << " rows";
  }
}

class LinearSumTest : public LinearTest {};
INSTANTIATE_TEST_SUITE_P(Types, LinearSumTest,
                         ::testing::Values(Types{DType::f32, DType::f32}, Types{DType::bf16, DType::f32}),
                         [](const auto& types) { return name_of(types.param.in); });

TEST_P(LinearSumTest, AddsToWhatIsThere) {
  for (const Shape shape : {Shape{1, 20, 7},
                            {1, 3592, 9},
                            {2, 64, 20000},
                            {3, 64, 8200},
                            {6, 40, 53},
                            {12, 264, 17001},
                            {13, 2088, 140},
                            {67, 64, 131}})
    for (const bool bias : {false, true})
      expect_reference(GetParam(), shape, 200, bias, Activation::none, false, true);
}

TEST_P(LinearTest, OneThreadAndSeveralAgree) {
  for (const int threads : {1, 3})
    expect_reference(GetParam(), {70, 96, 45}, 300, true, Activation::silu, true, false, threads);
}

// A primitive is kept for each shape: a later call of the same shape has to read its own operands.
TEST_P(LinearTest, TheSameShapeTwiceReadsItsOwnOperands) {
  for (const std::uint64_t seed : {1U, 2U, 3U})
    expect_reference(GetParam(), {9, 24, 11}, seed, true, Activation::gelu, true, false);
}

// The cache of primitives drops everything past a limit; results may not depend on it.
TEST_P(LinearTest, MoreShapesThanAreKept) {
  for (std::int64_t m = 1; m <= 1100; ++m) {
    Random random(static_cast<std::uint64_t>(m));
    const TestMatrix x = TestMatrix::random(GetParam().in, m, 2, random);
    const TestMatrix w = TestMatrix::random(GetParam().in, 1, 2, random);
    TestMatrix out(GetParam().out, m, 1);
    Stream stream = test_stream();
    OnDevice there(stream, out);
    linear(stream, OnDevice(stream, x), OnDevice(stream, w), there);
    there.fetch();
    const auto last = reference::linear(x.view(), w.view(), m - 1, 0, {}, 0);
    ASSERT_NEAR(out.get(m - 1, 0), last.value,
                1e-5 + rounding_of(GetParam().out) * 1.01 * std::abs(last.value))
        << m;
  }
}

TEST_P(LinearTest, NoRowsWriteNothing) {
  Random random(1);
  const TestMatrix x(GetParam().in, 0, 8);
  const TestMatrix w = TestMatrix::random(GetParam().in, 4, 8, random);
  TestMatrix out(GetParam().out, 0, 4);
  Stream stream = Stream::cpu(1);
  EXPECT_NO_THROW(linear(stream, x.view(), w.view(), out.view()));
}

TEST_P(LinearTest, NotANumberStaysInItsRow) {
  Random random(1);
  TestMatrix x = TestMatrix::random(GetParam().in, 5, 33, random);
  const TestMatrix w = TestMatrix::random(GetParam().in, 9, 33, random);
  x.set(2, 30, std::nanf(""));
  TestMatrix out(GetParam().out, 5, 9);
  Stream stream = test_stream();
  OnDevice there(stream, out);
  linear(stream, OnDevice(stream, x), OnDevice(stream, w), there);
  there.fetch();
  for (std::int64_t i = 0; i < 5; ++i)
    for (std::int64_t j = 0; j < 9; ++j) EXPECT_EQ(std::isnan(out.get(i, j)), i == 2) << i << ", " << j;
}

TEST(LinearArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix x(DType::f32, 2, 3), w(DType::f32, 4, 3), out(DType::f32, 2, 4), gate(DType::f32, 2, 4);
  TestMatrix x16(DType::bf16, 2, 3), w16(DType::bf16, 4, 3), out16(DType::bf16, 2, 4);
  TestMatrix short_w(DType::f32, 4, 2), short_out(DType::f32, 1, 4), narrow_out(DType::f32, 2, 3),
      narrow_gate(DType::f32, 2, 3);
  const auto refused = [&](ConstMatrix a, ConstMatrix b, Matrix c, const LinearOptions& options = {}) {
    EXPECT_THROW(linear(stream, a, b, c, options), std::invalid_argument);
  };
  refused(x.view(), w16.view(), out.view());
  refused(x.view(), w.view(), out16.view());
  refused(x.view(), short_w.view(), out.view());
  refused(x.view(), w.view(), short_out.view());
  refused(x.view(), w.view(), narrow_out.view());
  LinearOptions options;
  options.multiply = narrow_gate.view();
  refused(x.view(), w.view(), out.view(), options);
  options.multiply = out16.view();
  refused(x.view(), w.view(), out.view(), options);
  options = {};
  options.accumulate = true;
  refused(x16.view(), w16.view(), out16.view(), options);
  options.activation = Activation::silu;
  refused(x.view(), w.view(), out.view(), options);
  options.activation = Activation::none;
  options.multiply = gate.view();
  refused(x.view(), w.view(), out.view(), options);
  ConstMatrix bytes = x.view();
  bytes.dtype = DType::u8;
  ConstMatrix byte_weights = w.view();
  byte_weights.dtype = DType::u8;
  refused(bytes, byte_weights, out.view());
}

#if !defined(VIGIL_SANITIZED)  // whose own books grow
TEST(LinearCpuTest, ShapesThatAreNotUsedAnyMoreCostNoMemory) {
  Random random(1);
  TestMatrix x = TestMatrix::random(DType::f32, 1500, 24, random);
  const TestMatrix w = TestMatrix::random(DType::f32, 32, 24, random);
  TestMatrix out(DType::f32, 1500, 32);
  Stream stream = Stream::cpu(1);
  const auto run = [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t rows = from; rows < to; ++rows)
      linear(stream, x.view().rows_from(0, rows), w.view(), out.view().rows_from(0, rows));
  };
  run(1, 500);
  const std::size_t before = mallinfo2().uordblks;
  run(500, 1500);
  // Each is some 80 KB.
  EXPECT_LT(mallinfo2().uordblks, before + (8U << 20U));
  // One that was dropped is made again, and right.
  TestMatrix again(DType::f32, 7, 32);
  linear(stream, x.view().rows_from(0, 7), w.view(), again.view());
  EXPECT_NEAR(again.get(6, 31), reference::linear(x.view(), w.view(), 6, 31, {}, 0).value, 1e-4);
}
#endif

TEST(ProductTimeTest, CountsTheOperationsOfProducts) {
  Random random(1);
  const TestMatrix x = TestMatrix::random(DType::f32, 10, 20, random);
  const TestMatrix w = TestMatrix::random(DType::f32, 30, 20, random);
  TestMatrix out(DType::f32, 10, 30);
  Stream stream = Stream::cpu(1);
  measure_products(true);
  linear(stream, x.view(), w.view(), out.view());
  linear(stream, x.view(), w.view(), out.view());
  measure_products(false);
  EXPECT_EQ(product_flops(), 2.0 * 2 * 10 * 20 * 30);
  EXPECT_GT(product_seconds(), 0.0);
  const double seconds = product_seconds();
  linear(stream, x.view(), w.view(), out.view());
  EXPECT_EQ(product_seconds(), seconds);
}

TEST(ProductTimeTest, ProcessorTimeIsThatOfAllThreadsThatShareAProduct) {
  Random random(1);
  const TestMatrix x = TestMatrix::random(DType::f32, 700, 700, random);
  TestMatrix out(DType::f32, 700, 700);
  const auto cpu_of = [&](int threads) {
    Stream stream = Stream::cpu(threads);
    linear(stream, x.view(), x.view(), out.view());  // makes the primitive and wakes the threads
    const std::clock_t begin = std::clock();         // of the whole process
    measure_products(true);
    for (int i = 0; i < 20; ++i) linear(stream, x.view(), x.view(), out.view());
    measure_products(false);
    return product_cpu_seconds() * CLOCKS_PER_SEC / static_cast<double>(std::clock() - begin);
  };
  for (const int threads : {1, 2}) {
    const double share = cpu_of(threads);
    EXPECT_GT(share, 0.6) << threads << " threads: nothing else ran";
    EXPECT_LT(share, 1.3) << threads << " threads: no more than there is";
  }
}

}  // namespace
}  // namespace vigil::kernels
