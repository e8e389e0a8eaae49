#include "kernels/top_k/top_k.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Found {
  std::vector<std::int32_t> columns;
  std::vector<float> values;
  bool operator==(const Found&) const = default;
};

Found top_of(const TestMatrix& x, std::int64_t count) {
  Stream stream = test_stream(2);
  const auto size = static_cast<std::size_t>(x.rows() * count);
  Found found{std::vector<std::int32_t>(size, -7), std::vector<float>(size, std::nanf(""))};
  Mirror columns(stream, std::as_writable_bytes(std::span(found.columns)));
  Mirror values(stream, std::as_writable_bytes(std::span(found.values)));
  top_k(stream, OnDevice(stream, x), count, reinterpret_cast<std::int32_t*>(columns.data()),
        reinterpret_cast<float*>(values.data()));
  columns.fetch();
  values.fetch();
  return found;
}

/// By sorting everything.
Found wanted(const TestMatrix& x, std::int64_t count) {
  Found found;
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    std::vector<std::int32_t> order(static_cast<std::size_t>(x.cols()));
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](std::int32_t j) { return !(x.get(i, j) > kNone); });
    std::stable_sort(order.begin(), order.end(),
                     [&](std::int32_t a, std::int32_t b) { return x.get(i, a) > x.get(i, b); });
    order.resize(static_cast<std::size_t>(count), -1);
    for (const std::int32_t j : order) {
      found.columns.push_back(j);
      found.values.push_back(j < 0 ? kNone : x.get(i, j));
    }
  }
  return found;
}

TEST(TopKTest, FindsTheLargestOfRowsOfAnyLength) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (const std::int64_t cols : {1, 2, 63, 4095, 4096, 4097, 8193, 152'064}) {
    const TestMatrix x = TestMatrix::random(DType::f32, 3, cols, random, 3, 2);
    for (const std::int64_t count : {1, 2, 50, 1024})
      EXPECT_EQ(top_of(x, count), wanted(x, count)) << count << " of " << cols;
  }
}

// What is left of chunks of 4,096 is 245, 62, 16, 4 and then one times 1,024.
TEST(TopKTest, TakesAsManyTurnsAsItNeeds) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(2);
  const TestMatrix x = TestMatrix::random(DType::f32, 1, 1'000'003, random);
  EXPECT_EQ(top_of(x, 1024), wanted(x, 1024));
}

TEST(TopKTest, EqualOnesStayInTheOrderOfTheirColumns) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  TestMatrix x(DType::f32, 2, 20'000);
  for (std::int64_t j = 0; j < x.cols(); ++j) {
    x.set(0, j, 1);
    x.set(1, j, static_cast<float>(j % 7));
  }
  x.set(0, 19'999, 2);
  // Zeros are equal whatever their sign.
  for (const std::int64_t j : {5, 4'100, 9'000}) x.set(1, j, 7);
  for (std::int64_t j = 100; j < 20'000; j += 2) x.set(0, j, j % 4 == 0 ? -0.0F : 0.0F);
  const Found found = top_of(x, 600);
  EXPECT_EQ(found, wanted(x, 600));
  EXPECT_EQ(found.columns[0], 19'999);
  EXPECT_EQ(found.columns[1], 0);
  EXPECT_EQ(std::vector<std::int32_t>(found.columns.begin() + 600, found.columns.begin() + 604),
            (std::vector<std::int32_t>{5, 4'100, 9'000, 6}));
}

TEST(TopKTest, ZerosOfBothSignsAreEqual) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  TestMatrix x(DType::f32, 1, 6);
  for (std::int64_t j = 0; j < 6; ++j) x.set(0, j, j % 2 == 0 ? -0.0F : 0.0F);
  EXPECT_EQ(top_of(x, 6).columns, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(TopKTest, WhatIsNotThereIsTold) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const float nan = std::nanf("");
  TestMatrix x(DType::f32, 3, 5'000);
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t j = 0; j < x.cols(); ++j) x.set(i, j, i == 1 ? nan : kNone);
  x.set(0, 4'999, -3.0e38F);
  x.set(0, 17, std::numeric_limits<float>::infinity());
  x.set(0, 18, nan);
  EXPECT_EQ(top_of(x, 3), (Found{{17, 4'999, -1, -1, -1, -1, -1, -1, -1},
                                 {std::numeric_limits<float>::infinity(), -3.0e38F, kNone, kNone, kNone,
                                  kNone, kNone, kNone, kNone}}));
}

TEST(TopKTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  const TestMatrix x(DType::f32, 1, 4);
  EXPECT_THROW(top_k(stream, TestMatrix(DType::bf16, 1, 4).view(), 1, nullptr, nullptr),
               std::invalid_argument);
  for (const std::int64_t count : {std::int64_t{-1}, std::int64_t{0}, kMostTopK + 1}) {
    try {
      top_k(stream, x.view(), count, nullptr, nullptr);
      ADD_FAILURE() << count;
    } catch (const std::invalid_argument& error) {
      EXPECT_EQ(error.what(), "top_k: " + std::to_string(count) + " is not between 1 and 1024");
    }
  }
  EXPECT_NO_THROW(top_k(stream, TestMatrix(DType::f32, 0, 4).view(), 1, nullptr, nullptr));
}

}  // namespace
}  // namespace vigil::kernels
