#include "kernels/convert/convert.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

using Types = std::pair<DType, DType>;

class ConvertTest : public ::testing::TestWithParam<Types> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, ConvertTest,
                         ::testing::Values(Types{DType::f32, DType::bf16}, Types{DType::bf16, DType::f32},
                                           Types{DType::f32, DType::f32}, Types{DType::bf16, DType::bf16}),
                         [](const auto& types) {
                           return std::string(name_of(types.param.first)) + "_to_" +
                                  name_of(types.param.second);
                         });

TEST_P(ConvertTest, KeepsNumbersAsFarAsTheTypeDoes) {
  std::uint64_t seed = 1;
  for (const std::int64_t cols : {1, 3, 4, 8, 20, 257, 1280})
    for (const std::int64_t rows : {1, 5, 600})
      for (const std::int64_t gap : {0, 3, 8}) {
        Random random(seed++);
        const TestMatrix from = TestMatrix::random(GetParam().first, rows, cols, random, 1000, gap);
        TestMatrix to(GetParam().second, rows, cols, gap == 3 ? 5 : gap);
        Stream stream = test_stream(2);
        OnDevice there(stream, to);
        convert_rows(stream, OnDevice(stream, from), there);
        there.fetch();
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < cols; ++j) {
            const float value = from.get(i, j);
            ASSERT_EQ(to.get(i, j), GetParam().second == DType::bf16 ? to_float(to_bf16(value)) : value)
                << i << ", " << j << " of " << cols;
          }
        EXPECT_TRUE(to.gaps_untouched());
      }
}

/// `values` as one row, in the other type.
template <typename To, typename From>
std::vector<To> converted(std::vector<From> values, DType from, DType to) {
  Stream stream = test_stream();
  const auto cols = static_cast<std::int64_t>(values.size());
  std::vector<To> result(values.size());
  const Mirror source(stream, std::as_writable_bytes(std::span(values)));
  Mirror target(stream, std::as_writable_bytes(std::span(result)));
  convert_rows(stream, dense(static_cast<const void*>(source.data()), from, 1, cols),
               dense(static_cast<void*>(target.data()), to, 1, cols));
  target.fetch();
  return result;
}

TEST(ConvertRowsTest, EveryNumberOfBf16ComesBack) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  std::vector<std::uint16_t> all;
  for (std::uint32_t bits = 0; bits <= 0xffffU; ++bits) all.push_back(static_cast<std::uint16_t>(bits));
  const auto wide = converted<float>(all, DType::bf16, DType::f32);
  const auto back = converted<std::uint16_t>(wide, DType::f32, DType::bf16);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float value = to_float(bf16{all[i]});
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(wide[i]) && std::isnan(to_float(bf16{back[i]}))) << i;
    } else {
      ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(value)) << i;
      ASSERT_EQ(back[i], all[i]);
    }
  }
}

TEST(ConvertRowsTest, RoundsToNearestAndTiesToEven) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const float infinity = std::numeric_limits<float>::infinity();
  // Ties below an odd and an even neighbour, what is next to one, the smallest and the largest numbers.
  const std::vector<float> values{0x1.01p+0F,   0x1.03p+0F, 0x1.010002p+0F, -0x1.03p+0F,
                                  0x1p-149F,    0x1p-134F,  0x1.8p-133F,    0x1.fep+127F,
                                  0x1.ffp+127F, -infinity,  -0.0F};
  const std::vector<std::uint16_t> expected{0x3f80, 0x3f82, 0x3f81, 0xbf82, 0x0000, 0x0000,
                                            0x0002, 0x7f7f, 0x7f80, 0xff80, 0x8000};
  EXPECT_EQ(converted<std::uint16_t>(values, DType::f32, DType::bf16), expected);
}

TEST(ConvertRowsTest, BitsOfTheSameTypeAreCopied) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  std::vector<std::uint32_t> bits{0x7fc12345U, 0xff812345U, 1, 0x80000000U, 0x3f800001U};
  EXPECT_EQ(converted<std::uint32_t>(bits, DType::f32, DType::f32), bits);
  std::vector<std::uint16_t> halves{0x7fc1, 0xff81, 1, 0x8000, 0x3f80};
  EXPECT_EQ(converted<std::uint16_t>(halves, DType::bf16, DType::bf16), halves);
}

TEST(ConvertArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix from(DType::f32, 2, 4), narrow(DType::bf16, 2, 3), low(DType::bf16, 1, 4), to(DType::bf16, 2, 4);
  EXPECT_THROW(convert_rows(stream, from.view(), narrow.view()), std::invalid_argument);
  EXPECT_THROW(convert_rows(stream, from.view(), low.view()), std::invalid_argument);
  for (const DType type : {DType::f16, DType::e4m3, DType::i32, DType::u8}) {
    Matrix other = to.view();
    other.dtype = type;
    EXPECT_THROW(convert_rows(stream, from.view(), other), std::invalid_argument) << name_of(type);
    EXPECT_THROW(convert_rows(stream, other, from.view()), std::invalid_argument) << name_of(type);
  }
  Matrix overlapping = to.view();
  overlapping.stride = 3;
  EXPECT_THROW(convert_rows(stream, from.view(), overlapping), std::invalid_argument);
  EXPECT_THROW(convert_rows(stream, overlapping, from.view()), std::invalid_argument);
  EXPECT_NO_THROW(
      convert_rows(stream, TestMatrix(DType::f32, 0, 4).view(), TestMatrix(DType::bf16, 0, 4).view()));
}

}  // namespace
}  // namespace vigil::kernels
