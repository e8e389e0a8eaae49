#include "kernels/gather/gather.h"

#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

using Types = std::pair<DType, DType>;

class GatherTest : public ::testing::TestWithParam<Types> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, GatherTest,
                         ::testing::Values(Types{DType::f32, DType::f32}, Types{DType::bf16, DType::bf16},
                                           Types{DType::bf16, DType::f32}),
                         [](const auto& types) {
                           return std::string(name_of(types.param.first)) + "_to_" +
                                  name_of(types.param.second);
                         });

TEST_P(GatherTest, PicksRowsInAnyOrderAndMoreThanOnce) {
  std::uint64_t seed = 1;
  for (const std::int64_t cols : {1, 3, 4, 20, 257, 1280}) {
    Random random(seed++);
    const TestMatrix from = TestMatrix::random(GetParam().first, 41, cols, random, 2, 3);
    std::vector<std::int32_t> rows{40, 0, 7, 7, 40};
    for (int i = 0; i < 600; ++i) rows.push_back(static_cast<std::int32_t>(random.below(41)));
    TestMatrix to(GetParam().second, static_cast<std::int64_t>(rows.size()), cols, 5);
    Stream stream = test_stream(2);
    OnDevice there(stream, to);
    gather_rows(stream, OnDevice(stream, from), DeviceArray<std::int32_t>(stream, rows).data(), there);
    there.fetch();
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t j = 0; j < cols; ++j)
        ASSERT_EQ(to.get(static_cast<std::int64_t>(i), j), from.get(rows[i], j)) << i << ", " << j;
    EXPECT_TRUE(to.gaps_untouched());
  }
}

class ScatterTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, ScatterTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(ScatterTest, PlacesRowsAndLeavesTheOthers) {
  std::uint64_t seed = 1;
  for (const std::int64_t cols : {1, 3, 4, 257, 1280}) {
    Random random(seed++);
    const TestMatrix from = TestMatrix::random(GetParam(), 300, cols, random, 2, 3);
    TestMatrix to = TestMatrix::random(GetParam(), 700, cols, random, 2, 5);
    TestMatrix wanted = to;
    std::vector<std::int32_t> rows;
    for (std::int32_t i = 0; i < 300; ++i) rows.push_back((i * 3 + 1) % 700);
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::int64_t j = 0; j < cols; ++j)
        wanted.set(rows[i], j, from.get(static_cast<std::int64_t>(i), j));
    Stream stream = test_stream(2);
    OnDevice there(stream, to);
    scatter_rows(stream, OnDevice(stream, from), DeviceArray<std::int32_t>(stream, rows).data(), there);
    there.fetch();
    for (std::int64_t i = 0; i < 700; ++i)
      for (std::int64_t j = 0; j < cols; ++j) ASSERT_EQ(to.get(i, j), wanted.get(i, j)) << i << ", " << j;
  }
}

TEST(ScatterArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix from(DType::f32, 2, 4), narrow(DType::f32, 2, 3), rounded(DType::bf16, 2, 4);
  const std::int32_t rows[] = {0, 1};
  EXPECT_THROW(scatter_rows(stream, from.view(), rows, narrow.view()), std::invalid_argument);
  EXPECT_THROW(scatter_rows(stream, from.view(), rows, rounded.view()), std::invalid_argument);
}

TEST(GatherHalfTest, WidensHalfPrecision) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  // 1, -2, the smallest subnormal, the largest number.
  std::vector<std::uint16_t> halves{0x3c00, 0xc000, 0x0001, 0x7bff};
  TestMatrix to(DType::f32, 1, 4);
  Stream stream = test_stream();
  const Mirror from(stream, std::as_writable_bytes(std::span(halves)));
  OnDevice there(stream, to);
  const std::vector<std::int32_t> row{0};
  gather_rows(stream, dense(static_cast<const void*>(from.data()), DType::f16, 1, 4),
              DeviceArray<std::int32_t>(stream, row).data(), there);
  there.fetch();
  EXPECT_EQ(to.get(0, 0), 1.0F);
  EXPECT_EQ(to.get(0, 1), -2.0F);
  EXPECT_EQ(to.get(0, 2), 0x1p-24F);
  EXPECT_EQ(to.get(0, 3), 65504.0F);
}

TEST(GatherArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix from(DType::f32, 2, 4), narrow(DType::f32, 2, 3), rounded(DType::bf16, 2, 4);
  const std::int32_t rows[] = {0, 1};
  EXPECT_THROW(gather_rows(stream, from.view(), rows, narrow.view()), std::invalid_argument);
  EXPECT_THROW(gather_rows(stream, from.view(), rows, rounded.view()), std::invalid_argument);
  Matrix integers = from.view();
  integers.dtype = DType::i32;
  EXPECT_THROW(gather_rows(stream, integers, rows, integers), std::invalid_argument);
  EXPECT_NO_THROW(gather_rows(stream, from.view(), nullptr, TestMatrix(DType::f32, 0, 4).view()));
}

}  // namespace
}  // namespace vigil::kernels
