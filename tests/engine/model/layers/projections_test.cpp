// Weights of one input, one after the other in memory or not, and parameters that a seed makes up.
#include "engine/model/layers/projections.h"

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "engine/model/layers/gated.h"
#include "engine/model/layers/parameters.h"
#include "kernels/device/element.h"
#include "kernels/quantize/quantize.h"
#include "kernels/random/random.h"

namespace vigil::model {
namespace {

using kernels::Activation;
using kernels::dense;
using kernels::DType;
using kernels::Matrix;

constexpr std::int64_t kRows = 5, kInner = 24, kFirst = 16, kSecond = 16, kThird = 7;
constexpr std::int64_t kWidth = kFirst + kSecond + kThird;

/// Three weights and biases that lie one after the other, taken as joined or not.
struct Stacked {
  kernels::Stream stream = kernels::Stream::cpu(1);
  std::vector<float> x = numbers(kRows * kInner, 1), w = numbers(kWidth * kInner, 2),
                     bias = numbers(kWidth, 3);

  static std::vector<float> numbers(std::int64_t count, std::uint64_t seed) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
      values.push_back(kernels::random_number(seed, static_cast<std::uint64_t>(i)));
    return values;
  }
  kernels::ConstMatrix input() {
    return dense(static_cast<const void*>(x.data()), DType::f32, kRows, kInner);
  }
  Projections::Part part(std::int64_t first, std::int64_t rows) {
    return {dense(static_cast<const void*>(w.data() + first * kInner), DType::f32, rows, kInner),
            bias.data() + first};
  }
  Projections projections(bool joined) {
    return {{part(0, kFirst), part(kFirst, kSecond), part(kFirst + kSecond, kThird)}, joined};
  }
};

TEST(ProjectionsTest, ComputeTheSameJoinedAndApart) {
  Stacked stacked;
  std::vector<float> apart(kRows * kWidth, NAN), joined(kRows * kWidth, NAN);
  EXPECT_EQ(stacked.projections(true).width(), kWidth);
  stacked.projections(false).apply(stacked.stream, stacked.input(),
                                   dense(apart.data(), DType::f32, kRows, kWidth));
  stacked.projections(true).apply(stacked.stream, stacked.input(),
                                  dense(joined.data(), DType::f32, kRows, kWidth));
  for (std::size_t i = 0; i < apart.size(); ++i) ASSERT_NEAR(apart[i], joined[i], 1e-5) << i;
}

TEST(ProjectionsTest, APartGoesIntoItsOwnColumnsOnly) {
  Stacked stacked;
  std::vector<float> all(kRows * kWidth);
  stacked.projections(false).apply(stacked.stream, stacked.input(),
                                   dense(all.data(), DType::f32, kRows, kWidth));
  for (const bool joined : {false, true}) {
    std::vector<float> some(kRows * kWidth, NAN);
    stacked.projections(joined).apply(stacked.stream, stacked.input(),
                                      dense(some.data(), DType::f32, kRows, kWidth), 1, 2);
    for (std::int64_t i = 0; i < kRows; ++i)
      for (std::int64_t j = 0; j < kWidth; ++j) {
        const auto at = static_cast<std::size_t>(i * kWidth + j);
        if (j < kFirst) {
          ASSERT_TRUE(std::isnan(some[at])) << "column " << j << " belongs to another part";
        } else {
          ASSERT_NEAR(some[at], all[at], 1e-5) << i << ", " << j;
        }
      }
  }
}

TEST(GatedTest, IsTheSameJoinedAndApart) {
  Stacked stacked;
  std::vector<float> inner(kRows * 2 * kFirst);
  const auto run = [&](bool join, Activation activation) {
    const Projections mlp({stacked.part(0, kFirst), stacked.part(kFirst, kSecond)}, join);
    const Matrix result = gated(stacked.stream, mlp, activation, stacked.input(),
                                dense(inner.data(), DType::f32, kRows, 2 * kFirst));
    std::vector<float> values;
    for (std::int64_t i = 0; i < kRows; ++i)
      values.insert(values.end(), result.row<float>(i), result.row<float>(i) + kFirst);
    return values;
  };
  const std::vector<float> a = run(false, Activation::silu), b = run(true, Activation::silu);
  const std::vector<float> c = run(false, Activation::gelu), d = run(true, Activation::gelu);
  for (std::int64_t i = 0; i < kRows; ++i)
    for (std::int64_t j = 0; j < kFirst; ++j) {
      double gate = stacked.bias[static_cast<std::size_t>(j)],
             up = stacked.bias[static_cast<std::size_t>(kFirst + j)];
      for (std::int64_t k = 0; k < kInner; ++k) {
        const double value = stacked.x[static_cast<std::size_t>(i * kInner + k)];
        gate += value * stacked.w[static_cast<std::size_t>(j * kInner + k)];
        up += value * stacked.w[static_cast<std::size_t>((kFirst + j) * kInner + k)];
      }
      const auto at = static_cast<std::size_t>(i * kFirst + j);
      ASSERT_NEAR(a[at], gate / (1 + std::exp(-gate)) * up, 1e-5);
      ASSERT_NEAR(b[at], a[at], 1e-5);
      ASSERT_NEAR(c[at], gate * (1 + std::erf(gate / std::sqrt(2.0))) / 2 * up, 1e-5);
      ASSERT_NEAR(d[at], c[at], 1e-5);
    }
}

TEST(GatedTest, GoesIntoE4m3WhereThereIsAPlaceForIt) {
  Stacked stacked;
  for (const bool join : {false, true}) {
    std::vector<float> inner(kRows * 2 * kFirst);
    const kernels::Buffer memory(stacked.stream, kernels::e4m3_bytes(kRows, kFirst));
    const Projections mlp({stacked.part(0, kFirst), stacked.part(kFirst, kSecond)}, join);
    const Matrix to = dense(inner.data(), DType::f32, kRows, 2 * kFirst);
    const Matrix plain = gated(stacked.stream, mlp, Activation::silu, stacked.input(), to);
    std::vector<float> expected;
    for (std::int64_t i = 0; i < kRows; ++i)
      expected.insert(expected.end(), plain.row<float>(i), plain.row<float>(i) + kFirst);
    const Matrix rounded = kernels::e4m3_matrix(memory.data(), kRows, kFirst);
    const Matrix result = gated(stacked.stream, mlp, Activation::silu, stacked.input(), to, rounded);
    EXPECT_EQ(result.data, rounded.data);
    EXPECT_EQ(result.dtype, DType::e4m3);
    for (std::int64_t i = 0; i < kRows; ++i)
      for (std::int64_t j = 0; j < kFirst; ++j) {
        const double value = expected[static_cast<std::size_t>(i * kFirst + j)];
        ASSERT_NEAR(kernels::element(result, i, j), value,
                    0.0626 * std::abs(value) + 1e-3 * rounded.scales[i]);
      }
  }
}

TEST(QuantizedParametersTest, RoundLargeWeightsAndKeepNothingElseOfThem) {
  kernels::Stream stream = kernels::Stream::cpu(1);
  Parameters plain(7, stream, DType::f32), quantized(7, stream, DType::f32, Quantization::fp8);
  constexpr std::int64_t kLarge = 64, kCols = 100;
  const kernels::ConstMatrix wide = plain.large("a.weight", kLarge, kCols);
  EXPECT_EQ(wide.dtype, DType::f32);
  const kernels::ConstMatrix matrix = quantized.large("a.weight", kLarge, kCols);
  EXPECT_EQ(quantized.owned_bytes(), kernels::e4m3_bytes(kLarge, kCols));
  ASSERT_EQ(matrix.dtype, DType::e4m3);
  for (std::int64_t i = 0; i < kLarge; ++i)
    for (std::int64_t j = 0; j < kCols; ++j)
      ASSERT_NEAR(kernels::element(matrix, i, j), wide.row<float>(i)[j],
                  0.0626F * std::abs(wide.row<float>(i)[j]) + 1e-3F * matrix.scales[i]);
  const Projections projections =
      quantized.projections({{"b.weight", "", 16, 16}, {"c.weight", "", 8, 8}}, kCols);
  EXPECT_EQ(projections.part(0).weight.dtype, DType::e4m3);
  EXPECT_EQ(projections.part(1).weight.dtype, DType::e4m3);
  EXPECT_EQ(quantized.matrix("head.weight", kLarge, kCols).dtype, DType::f32)
      << "only large products are rounded";
}

TEST(MadeUpParametersTest, DependOnSeedAndNameAlone) {
  const kernels::Stream stream = kernels::Stream::cpu(1);
  Parameters parameters(7, stream, DType::f32), again(7, stream, DType::f32), other(8, stream, DType::f32);
  const auto values = [](const kernels::ConstMatrix& matrix) {
    return std::vector<float>(matrix.row<float>(0), matrix.row<float>(0) + matrix.rows * matrix.cols);
  };
  const std::vector<float> first = values(parameters.matrix("a.weight", 30, 40));
  EXPECT_EQ(first, values(again.matrix("a.weight", 30, 40)));
  EXPECT_NE(first, values(parameters.matrix("b.weight", 30, 40)));
  EXPECT_NE(first, values(other.matrix("a.weight", 30, 40)));
  double squares = 0;
  for (const float value : first) squares += double{value} * value;
  EXPECT_NEAR(squares / 1200, 1.0 / 40, 0.2 / 40) << "a product of 40 numbers of size one stays of size one";
}

TEST(MadeUpParametersTest, ZerosFollowAndNormsAreOne) {
  const kernels::Stream stream = kernels::Stream::cpu(1);
  Parameters parameters(7, stream, DType::f32);
  const kernels::ConstMatrix padded = parameters.padded("a.weight", 3, 5, 4, 8);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 8; ++j)
      EXPECT_EQ(padded.row<float>(i)[j] == 0, i >= 3 || j >= 5) << i << ", " << j;
  const float* norm = parameters.vector("norm.weight", 3, 5);
  EXPECT_EQ(std::vector<float>(norm, norm + 5), (std::vector<float>{1, 1, 1, 0, 0}));
  const kernels::Bias bias = parameters.bias("a.bias", 3);
  EXPECT_NE(bias.values[0], bias.values[1]);
  EXPECT_LT(std::abs(bias.values[2]), 0.1F);
}

}  // namespace
}  // namespace vigil::model
