#include "kernels/argmax/argmax.h"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

std::vector<std::int32_t> largest_of(const TestMatrix& x, std::vector<float>* values = nullptr) {
  Stream stream = test_stream(2);
  std::vector<std::int32_t> columns(static_cast<std::size_t>(x.rows()), -7);
  Mirror there(stream, std::as_writable_bytes(std::span(columns)));
  auto* found = reinterpret_cast<std::int32_t*>(there.data());
  if (values == nullptr) {
    largest_columns(stream, OnDevice(stream, x), found);
  } else {
    values->assign(columns.size(), std::nanf(""));
    Mirror values_there(stream, std::as_writable_bytes(std::span(*values)));
    largest_columns(stream, OnDevice(stream, x), found, reinterpret_cast<float*>(values_there.data()));
    values_there.fetch();
  }
  there.fetch();
  return columns;
}

TEST(ArgmaxTest, FindsTheLargestOfRowsOfAnyLength) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(1);
  for (const std::int64_t cols : {1, 2, 31, 1023, 1024, 1025, 152'064}) {
    const TestMatrix x = TestMatrix::random(DType::f32, 5, cols, random, 3, 2);
    const std::vector<std::int32_t> found = largest_of(x);
    for (std::int64_t i = 0; i < 5; ++i) {
      std::int64_t best = 0;
      for (std::int64_t j = 1; j < cols; ++j)
        if (x.get(i, j) > x.get(i, best)) best = j;
      EXPECT_EQ(found[static_cast<std::size_t>(i)], best) << cols;
    }
  }
}

TEST(ArgmaxTest, TheFirstOfEqualOnesWinsAndNaNNever) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const float nan = std::nanf("");
  const float none = -std::numeric_limits<float>::infinity();
  TestMatrix x(DType::f32, 4, 5000);
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 5000; ++j) x.set(i, j, i == 2 ? none : i == 3 ? nan : 1.0F);
  x.set(0, 4000, 2);
  x.set(0, 3000, 2);
  x.set(0, 0, nan);
  EXPECT_EQ(largest_of(x), (std::vector<std::int32_t>{3000, 0, -1, -1}));
  std::vector<float> values;
  EXPECT_EQ(largest_of(x, &values), (std::vector<std::int32_t>{3000, 0, -1, -1}));
  EXPECT_EQ(values, (std::vector<float>{2, 1, none, none}));
}

TEST(ArgmaxTest, OtherTypesAreRefused) {
  Stream stream = Stream::cpu(1);
  EXPECT_THROW(largest_columns(stream, TestMatrix(DType::bf16, 1, 1).view(), nullptr), std::invalid_argument);
  EXPECT_NO_THROW(largest_columns(stream, TestMatrix(DType::f32, 0, 5).view(), nullptr));
}

}  // namespace
}  // namespace vigil::kernels
