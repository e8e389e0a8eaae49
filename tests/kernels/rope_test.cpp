#include "kernels/rope/rope.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/rope/rope_reference.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

class RopeTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, RopeTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

/// Runs `rope` on the device under test.
void rotate(Stream& stream, TestMatrix& x, std::int64_t head_dim, std::span<const float> cos,
            std::span<const float> sin) {
  OnDevice there(stream, x);
  rope(stream, there, head_dim, DeviceArray<float>(stream, cos).data(),
       DeviceArray<float>(stream, sin).data());
  there.fetch();
}

struct Angles {
  std::vector<float> cos, sin;

  Angles(std::int64_t count, Random& random, float most) {
    for (std::int64_t i = 0; i < count; ++i) {
      const float angle = most * random.number();
      cos.push_back(std::cos(angle));
      sin.push_back(std::sin(angle));
    }
  }
};

TEST_P(RopeTest, AgreesWithTheReferenceAtAwkwardSizes) {
  std::uint64_t seed = 1;
  for (const std::int64_t head_dim : {2, 20, 40, 64, 80, 128})
    for (const std::int64_t heads : {1, 3, 7})
      for (const std::int64_t rows : {1, 5, 64, 67}) {
        Random random(seed++);
        const TestMatrix before = TestMatrix::random(GetParam(), rows, heads * head_dim, random, 4);
        TestMatrix x(GetParam(), rows, heads * head_dim, 9);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < x.cols(); ++j) x.set(i, j, before.get(i, j));
        const Angles angles(rows * head_dim / 2, random, 100);
        Stream stream = test_stream(2);
        rotate(stream, x, head_dim, angles.cos, angles.sin);
        for (std::int64_t i = 0; i < rows; ++i) {
          const auto expected =
              reference::rope(before.view(), head_dim, angles.cos.data(), angles.sin.data(), i);
          for (std::int64_t j = 0; j < x.cols(); ++j) {
            const double value = expected[static_cast<std::size_t>(j)];
            // Two products of numbers below 4 in f32, then the storage.
            ASSERT_NEAR(x.get(i, j), value, 1e-6 + rounding_of(GetParam()) * 1.01 * std::abs(value))
                << i << ", " << j << " with heads of " << head_dim;
          }
        }
        EXPECT_TRUE(x.gaps_untouched());
      }
}

TEST_P(RopeTest, TheAngleZeroChangesNothing) {
  Random random(5);
  TestMatrix x = TestMatrix::random(GetParam(), 3, 60, random);
  const auto before = x.bytes();
  const std::vector<float> ones(30, 1.0F), zeros(30, 0.0F);
  Stream stream = test_stream(1);
  rotate(stream, x, 20, ones, zeros);
  EXPECT_EQ(x.bytes(), before);
}

// What makes a stream's keys reusable: products of rotated vectors depend on the difference of their angles
// only.
TEST(RopeRelativeTest, ProductsDependOnDifferencesOnly) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  constexpr std::int64_t kHead = 20;
  Random random(6);
  const TestMatrix q = TestMatrix::random(DType::f32, 1, kHead, random);
  const TestMatrix k = TestMatrix::random(DType::f32, 1, kHead, random);
  Stream stream = test_stream(1);
  const auto product_at = [&](float q_position, float k_position) {
    TestMatrix a = q, b = k;
    for (auto [matrix, position] : {std::pair{&a, q_position}, std::pair{&b, k_position}}) {
      std::vector<float> cos, sin;
      for (int j = 0; j < kHead / 2; ++j) {
        const double angle = double{position} * std::pow(50.0, -j * 2.0 / kHead);
        cos.push_back(static_cast<float>(std::cos(angle)));
        sin.push_back(static_cast<float>(std::sin(angle)));
      }
      rotate(stream, *matrix, kHead, cos, sin);
    }
    double sum = 0;
    for (std::int64_t j = 0; j < kHead; ++j) sum += double{a.get(0, j)} * double{b.get(0, j)};
    return sum;
  };
  EXPECT_NEAR(product_at(1007, 1000), product_at(7, 0), 1e-5);
  EXPECT_GT(std::abs(product_at(8, 0) - product_at(7, 0)), 1e-2);
}

TEST_P(RopeTest, NoRowsChangeNothing) {
  TestMatrix x(GetParam(), 0, 40);
  Stream stream = test_stream(1);
  EXPECT_NO_THROW(rope(stream, x.view(), 20, nullptr, nullptr));
}

/// What `rope_angles` makes on the device under test, row by row.
struct Tables {
  std::vector<float> cos, sin;

  Tables(Stream& stream, const std::vector<RopePosition>& positions,
         const std::vector<RopeFrequency>& frequencies, RopeAngles precision) {
    const auto rows = static_cast<std::int64_t>(positions.size());
    const auto pairs = static_cast<std::int64_t>(frequencies.size());
    TestMatrix of_cos(DType::f32, rows, pairs), of_sin(DType::f32, rows, pairs);
    OnDevice there_cos(stream, of_cos), there_sin(stream, of_sin);
    rope_angles(stream, DeviceArray<RopePosition>(stream, positions).data(), rows,
                DeviceArray<RopeFrequency>(stream, frequencies).data(), pairs, precision,
                there_cos.view().row<float>(0), there_sin.view().row<float>(0));
    there_cos.fetch();
    there_sin.fetch();
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < pairs; ++j) {
        cos.push_back(of_cos.get(i, j));
        sin.push_back(of_sin.get(i, j));
      }
  }
};

/// Of heads of 128 elements, as Qwen2.5-VL turns them, all by one axis.
std::vector<RopeFrequency> published_frequencies(std::int32_t axis) {
  std::vector<RopeFrequency> frequencies;
  for (int j = 0; j < 64; ++j)
    frequencies.push_back({1.0F / std::pow(1e6F, static_cast<float>(2 * j) / 128.0F), axis});
  return frequencies;
}

constexpr std::int32_t kFarthest = std::numeric_limits<std::int32_t>::max();

TEST(RopeAnglesTest, ArePositionsTimesFrequencies) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  // Far positions, where the angle has lost digits: the device has to reduce it as the host does.
  const std::vector<RopePosition> positions{
      {0, 0, 0}, {3, 5, 7}, {123456, 9, 1}, {1 << 20, 4, 2}, {kFarthest, -3, 0}};
  const std::vector<RopeFrequency> frequencies{{1.0F, 0},   {0.5F, 1},  {0.25F, 1},
                                               {0.125F, 2}, {1e-4F, 0}, {0.7F, 0}};
  Stream stream = test_stream(2);
  const Tables tables(stream, positions, frequencies, RopeAngles::single);
  std::size_t at = 0;
  for (const RopePosition& position : positions)
    for (const RopeFrequency& frequency : frequencies) {
      const float angle =
          static_cast<float>(position[static_cast<std::size_t>(frequency.axis)]) * frequency.inverse;
      if (tests_on_gpu()) {
        EXPECT_NEAR(tables.cos[at], std::cos(double{angle}), 1e-6) << at;
        EXPECT_NEAR(tables.sin[at], std::sin(double{angle}), 1e-6) << at;
      } else {
        EXPECT_EQ(tables.cos[at], std::cos(angle)) << at;
        EXPECT_EQ(tables.sin[at], std::sin(angle)) << at;
      }
      ++at;
    }
}

TEST(RopeAnglesTest, WideOnesAreExactAtAllPositions) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(7);
  std::vector<RopePosition> positions;
  for (const std::int32_t position :
       {0, 1, -1, 12345, 1 << 20, 1 << 24, 1 << 30, kFarthest - 1, kFarthest, -kFarthest - 1})
    positions.push_back({5, position, 6});
  for (int i = 0; i < 400; ++i)
    positions.push_back({5, static_cast<std::int32_t>(random.below(std::int64_t{1} << (1 + i % 31))), 6});
  std::vector<RopeFrequency> frequencies = published_frequencies(1);
  for (int i = 0; i < 64; ++i) frequencies.push_back({0.5F + 0.5F * random.number(), 1});
  Stream stream = test_stream(2);
  const Tables tables(stream, positions, frequencies, RopeAngles::wide);
  std::size_t at = 0;
  long double most = 0;
  for (const RopePosition& position : positions)
    for (const RopeFrequency& frequency : frequencies) {
      const long double angle =
          static_cast<long double>(position[1]) * static_cast<long double>(frequency.inverse);
      most = std::max({most, std::abs(static_cast<long double>(tables.cos[at]) - std::cos(angle)),
                       std::abs(static_cast<long double>(tables.sin[at]) - std::sin(angle))});
      ++at;
    }
  EXPECT_LE(most, 1e-6L);
}

// A stream that has run for long: its tokens see each other as they did at its begin.
TEST(RopeAnglesTest, WideOnesKeepDifferencesOfFarPositions) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  constexpr std::int64_t kHead = 128;
  const std::vector<RopeFrequency> frequencies = published_frequencies(0);
  Stream stream = test_stream(2);
  Random random(8);
  const auto product_at = [&](const TestMatrix& q, const TestMatrix& k, std::int32_t of_q, std::int32_t of_k,
                              RopeAngles precision) {
    const Tables tables(stream, {{of_q, 0, 0}, {of_k, 0, 0}}, frequencies, precision);
    TestMatrix both(DType::f32, 2, kHead);
    for (std::int64_t j = 0; j < kHead; ++j) {
      both.set(0, j, q.get(0, j));
      both.set(1, j, k.get(0, j));
    }
    rotate(stream, both, kHead, tables.cos, tables.sin);
    double sum = 0;
    for (std::int64_t j = 0; j < kHead; ++j) sum += double{both.get(0, j)} * double{both.get(1, j)};
    return sum;
  };
  double single_off = 0;
  for (int i = 0; i < 100; ++i) {
    const TestMatrix q = TestMatrix::random(DType::f32, 1, kHead, random);
    const TestMatrix k = TestMatrix::random(DType::f32, 1, kHead, random);
    const auto far = static_cast<std::int32_t>((std::int64_t{1} << 30) + random.below(1 << 20));
    const auto apart = static_cast<std::int32_t>(random.below(i % 2 == 0 ? 100 : 1 << 20));
    const double expected = product_at(q, k, apart, 0, RopeAngles::wide);
    EXPECT_NEAR(product_at(q, k, far + apart, far, RopeAngles::wide), expected, 1e-5) << far << ", " << apart;
    single_off =
        std::max(single_off, std::abs(product_at(q, k, far + apart, far, RopeAngles::single) - expected));
  }
  EXPECT_GT(single_off, 0.1) << "then nobody needs wide ones";
}

TEST(RopeArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  TestMatrix x(DType::f32, 1, 12);
  const std::vector<float> angles(12);
  for (const std::int64_t head_dim : {0, -2, 3, 5, 8})
    EXPECT_THROW(rope(stream, x.view(), head_dim, angles.data(), angles.data()), std::invalid_argument)
        << head_dim;
  Matrix integers = x.view();
  integers.dtype = DType::i32;
  EXPECT_THROW(rope(stream, integers, 4, angles.data(), angles.data()), std::invalid_argument);
  EXPECT_THROW(rope_angles(stream, nullptr, -1, nullptr, 4, RopeAngles::single, nullptr, nullptr),
               std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
