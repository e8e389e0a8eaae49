#include "kernels/random/random.h"

#include <cmath>
#include <stdexcept>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

class FillRandomTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, FillRandomTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(FillRandomTest, EveryElementIsItsOwnNumberOnEveryDevice) {
  TestMatrix out(GetParam(), 37, 53, 3);
  Stream stream = test_stream(2);
  OnDevice there(stream, out);
  fill_random(stream, there, 99, 0.5F);
  there.fetch();
  for (std::int64_t i = 0; i < 37; ++i)
    for (std::int64_t j = 0; j < 53; ++j) {
      const float number = 0.5F * random_number(99, static_cast<std::uint64_t>(i * 53 + j));
      ASSERT_EQ(out.get(i, j), GetParam() == DType::f32 ? number : to_float(to_bf16(number)))
          << i << ", " << j;
    }
  EXPECT_TRUE(out.gaps_untouched());
}

TEST_P(FillRandomTest, APartHasTheNumbersOfTheWhole) {
  Stream stream = test_stream(2);
  TestMatrix whole(GetParam(), 9, 20), part(GetParam(), 4, 6, 1);
  OnDevice whole_there(stream, whole), part_there(stream, part);
  fill_random(stream, whole_there, 7, 2);
  fill_random(stream, part_there, 7, 2, {.first = 3 * 20 + 5, .pitch = 20});
  whole_there.fetch();
  part_there.fetch();
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 6; ++j) EXPECT_EQ(part.get(i, j), whole.get(3 + i, 5 + j)) << i << ", " << j;
}

TEST(RandomNumberTest, IsUniformAndDependsOnItsSeed) {
  constexpr std::uint64_t kCount = 100'000;
  double sum = 0, squares = 0, product = 0;
  for (std::uint64_t i = 0; i < kCount; ++i) {
    const double a = random_number(1, i), b = random_number(2, i);
    ASSERT_GE(a, -1);
    ASSERT_LT(a, 1);
    sum += a;
    squares += a * a;
    product += a * b;
  }
  // Within five standard deviations: 1/sqrt(3 n), and those of the squares and products.
  EXPECT_NEAR(sum / kCount, 0, 5 * 0.58 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0 / 3, 5 * 0.3 / std::sqrt(kCount));
  EXPECT_NEAR(product / kCount, 0, 5 * 0.34 / std::sqrt(kCount));
}

TEST(FillRandomArgumentsTest, OtherTypesAreRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix out(DType::f32, 1, 1);
  Matrix integers = out.view();
  integers.dtype = DType::i32;
  EXPECT_THROW(fill_random(stream, integers, 1, 1), std::invalid_argument);
  EXPECT_NO_THROW(fill_random(stream, TestMatrix(DType::f32, 0, 5).view(), 1, 1));
}

}  // namespace
}  // namespace vigil::kernels
