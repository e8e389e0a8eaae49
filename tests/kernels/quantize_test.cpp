#include "kernels/quantize/quantize.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/quantize/quantize_reference.h"
#include "tests/kernels/e4m3_matrix.h"

namespace vigil::kernels {
namespace {

/// What torch makes of numbers: tools/golden_e4m3.py.
struct Golden {
  struct Code {
    std::uint32_t number = 0;
    /// The smallest positive number with this code; 0 for other codes.
    std::uint32_t first = 0;
  };
  std::vector<Code> codes;
  std::vector<std::pair<std::uint32_t, std::uint8_t>> others;

  Golden() : codes(256) {
    std::ifstream file(VIGIL_SOURCE_DIR "/tests/golden/e4m3.txt");
    std::string line;
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string begin;
      std::uint32_t code = 0;
      words >> begin;
      if (begin == "=") {
        std::uint32_t bits = 0;
        words >> std::hex >> bits >> code;
        others.emplace_back(bits, static_cast<std::uint8_t>(code));
      } else {
        Code& of = codes.at(std::stoul(begin, nullptr, 16));
        words >> std::hex >> of.number >> of.first;
      }
    }
  }
};

std::uint8_t code_of(std::uint32_t bits) {
  return to_e4m3(std::bit_cast<float>(bits)).bits;
}

TEST(E4m3Test, EveryCodeIsTorchsNumber) {
  const Golden golden;
  for (std::uint32_t code = 0; code < 256; ++code) {
    const float number = to_float(e4m3{static_cast<std::uint8_t>(code)});
    const auto expected = std::bit_cast<float>(golden.codes[code].number);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(number)) << code;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(number), golden.codes[code].number) << code;
    }
  }
  EXPECT_EQ(to_float(e4m3{0x7e}), kMostE4m3);
}

TEST(E4m3Test, EveryStepOfRoundingIsTorchs) {
  const Golden golden;
  for (std::uint32_t code = 1; code < 0x7f; ++code) {
    const std::uint32_t first = golden.codes[code].first;
    ASSERT_NE(first, 0U);
    EXPECT_EQ(code_of(first), code);
    EXPECT_EQ(code_of(first - 1), code - 1);
    EXPECT_EQ(code_of(first | 0x80000000U), code | 0x80U);
    EXPECT_EQ(code_of((first - 1) | 0x80000000U), (code - 1) | 0x80U);
    // Between two steps nothing changes; every 997th number is enough to find what does.
    const std::uint32_t next = code < 0x7e ? golden.codes[code + 1].first : 0x43e00000U;
    for (std::uint32_t bits = first; bits < next; bits += 997) ASSERT_EQ(code_of(bits), code) << bits;
  }
  for (const auto& [bits, code] : golden.others) EXPECT_EQ(code_of(bits), code) << bits;
  EXPECT_EQ(golden.others.size(), 10U);
}

class QuantizeTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }

  static E4m3Matrix rounded(const TestMatrix& x) { return E4m3Matrix::rounded(x); }
};
INSTANTIATE_TEST_SUITE_P(Types, QuantizeTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(QuantizeTest, AgreesWithTheReferenceAtAwkwardSizes) {
  std::uint64_t seed = 1;
  for (const std::int64_t rows : {1, 2, 17, 131})
    for (const std::int64_t cols : {1, 7, 8, 16, 20, 140, 3584, 18944}) {
      Random random(seed++);
      TestMatrix x = TestMatrix::random(GetParam(), rows, cols, random, 3, cols % 8 == 0 ? 8 : 3);
      // Rows of very different size, of which some numbers fall below the smallest of E4M3.
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j)
          x.set(i, j, x.get(i, j) * std::pow(x.get(i, j), 6.0F) * std::exp2(static_cast<float>(i % 40 - 20)));
      const E4m3Matrix out = rounded(x);
      for (std::int64_t i = 0; i < rows; ++i) {
        const double scale = reference::e4m3_scale(x.view(), i);
        ASSERT_NEAR(out.scale(i), scale, 1e-7 * scale);
        for (std::int64_t j = 0; j < cols; ++j) {
          const double wanted = x.get(i, j) / scale;
          const reference::Nearest nearest = reference::nearest_e4m3(wanted);
          const double got = to_float(e4m3{out.code(i, j)});
          // A value within rounding of the middle of two numbers may go to either.
          ASSERT_LE(std::abs(got - wanted), nearest.half_step + 4e-7 * std::abs(wanted))
              << i << ", " << j << " of [" << rows << ", " << cols << "]";
        }
        for (std::int64_t j = cols; j < e4m3_stride(cols); ++j)
          ASSERT_EQ(out.code(i, j), 0) << "after the row";
      }
    }
}

// The same arithmetic in f32 on every device: not only near, but the very codes.
TEST_P(QuantizeTest, EveryDeviceMakesTheSameCodes) {
  Random random(5);
  const TestMatrix x = TestMatrix::random(GetParam(), 37, 1000, random, 2);
  const E4m3Matrix out = rounded(x);
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    float most = 0;
    for (std::int64_t j = 0; j < x.cols(); ++j) most = std::max(most, std::abs(x.get(i, j)));
    ASSERT_EQ(out.scale(i), most / kMostE4m3);
    const float inverse = 1.0F / (most / kMostE4m3);
    for (std::int64_t j = 0; j < x.cols(); ++j)
      ASSERT_EQ(out.code(i, j), to_e4m3(x.get(i, j) * inverse).bits) << i << ", " << j;
  }
}

TEST_P(QuantizeTest, ZerosStayZerosAndTinyOrHugeRowsKeepTheirDigits) {
  TestMatrix x(GetParam(), 4, 20);
  const float sizes[] = {0.0F, 1e-37F, 1e30F, 2e38F};
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 20; ++j) x.set(i, j, sizes[i] * (static_cast<float>(j - 10) / 10.0F));
  const E4m3Matrix out = rounded(x);
  for (std::int64_t j = 0; j < 20; ++j) EXPECT_EQ(out.get(0, j), 0.0F);
  EXPECT_TRUE(std::isfinite(out.scale(0)));
  for (std::int64_t i = 1; i < 4; ++i)
    for (std::int64_t j = 0; j < 20; ++j)
      EXPECT_NEAR(out.get(i, j) / sizes[i], x.get(i, j) / sizes[i], 0.07) << i << ", " << j;
}

TEST_P(QuantizeTest, NotANumberAndInfinityTakeTheirRowsScaleAndNoOther) {
  for (const float bad : {std::nanf(""), -std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()})
    for (const std::int64_t at : {0, 14, 32}) {
      Random random(1);
      TestMatrix x = TestMatrix::random(GetParam(), 3, 33, random);
      x.set(1, at, bad);
      const E4m3Matrix out = rounded(x);
      for (std::int64_t i = 0; i < 3; ++i)
        for (std::int64_t j = 0; j < 33; ++j)
          ASSERT_EQ(std::isnan(out.get(i, j)), i == 1) << i << ", " << j << " with " << bad << " at " << at;
    }
}

TEST(QuantizeArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix x(DType::f32, 2, 20), shorter(DType::f32, 1, 20), narrow(DType::f32, 2, 19);
  std::vector<std::byte> memory(e4m3_bytes(2, 20) + 16);
  const Matrix out =
      e4m3_matrix(memory.data() + 16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16, 2, 20);
  EXPECT_EQ(out.stride, 32);
  for (TestMatrix* other : {&shorter, &narrow})
    EXPECT_THROW(quantize_rows(stream, other->view(), out), std::invalid_argument);
  EXPECT_THROW(quantize_rows(stream, x.view(), x.view()), std::invalid_argument);
  EXPECT_THROW(quantize_rows(stream, out, out), std::invalid_argument);
  Matrix without = out;
  without.scales = nullptr;
  EXPECT_THROW(quantize_rows(stream, x.view(), without), std::invalid_argument);
  Matrix tight = out;
  tight.stride = 20;
  EXPECT_THROW(quantize_rows(stream, x.view(), tight), std::invalid_argument);
}

TEST(E4m3MatrixTest, RowsTakeTheirScalesAlong) {
  std::vector<std::byte> memory(e4m3_bytes(5, 20) + 16);
  const Matrix whole =
      e4m3_matrix(memory.data() + 16 - reinterpret_cast<std::uintptr_t>(memory.data()) % 16, 5, 20);
  const Matrix part = whole.rows_from(3, 2);
  EXPECT_EQ(part.scales, whole.scales + 3);
  EXPECT_EQ(part.row<e4m3>(0), whole.row<e4m3>(3));
  const ConstMatrix read = part;
  EXPECT_EQ(read.scales, part.scales);
  EXPECT_EQ(static_cast<const void*>(whole.scales), static_cast<const void*>(whole.row<e4m3>(5)));
}

}  // namespace
}  // namespace vigil::kernels
