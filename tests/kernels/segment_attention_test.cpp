#include <cmath>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/rope/rope.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 3 * 0x1p-8 : 1e-5;
}

class SegmentAttentionTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT(GetParam()); }

  /// Rows that begin anywhere, and at multiples of 16 bytes, which a GPU's matrix units ask for.
  void check(const std::vector<std::int32_t>& bounds, std::int64_t heads, std::int64_t head_dim,
             std::uint64_t seed, int threads = 2) {
    for (const std::int64_t gap : {3, 8}) check(bounds, heads, head_dim, seed, threads, gap);
  }

  /// Queries, keys and values as columns of one product, which is how the vision tower has them.
  void check(const std::vector<std::int32_t>& bounds, std::int64_t heads, std::int64_t head_dim,
             std::uint64_t seed, int threads, std::int64_t gap) {
    Random random(seed);
    const std::int64_t rows = bounds.back(), cols = heads * head_dim;
    TestMatrix qkv = TestMatrix::random(GetParam(), rows, 3 * cols, random, 2, gap);
    TestMatrix out(GetParam(), rows, cols, gap);
    const Matrix q = qkv.view().columns(0, cols), k = qkv.view().columns(cols, cols),
                 v = qkv.view().columns(2 * cols, cols);
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    Stream stream = test_stream(threads);
    const OnDevice all(stream, qkv);
    OnDevice result(stream, out);
    segment_attention(stream, all.view().columns(0, cols), all.view().columns(cols, cols),
                      all.view().columns(2 * cols, cols), SegmentPlan(stream, bounds), head_dim, scale,
                      result);
    result.fetch();
    for (std::size_t s = 0; s + 1 < bounds.size(); ++s)
      for (std::int64_t i = bounds[s]; i < bounds[s + 1]; ++i)
        for (std::int64_t head = 0; head < heads; ++head) {
          const auto expected =
              reference::segment_attention(q, k, v, bounds[s], bounds[s + 1], head_dim, scale, i, head);
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const auto at = static_cast<std::size_t>(d);
            ASSERT_NEAR(out.get(i, head * head_dim + d), expected.value[at],
                        tolerance_of(GetParam()) * expected.magnitude[at])
                << "segment " << s << ", row " << i << ", head " << head << ", element " << d;
          }
        }
    EXPECT_TRUE(out.gaps_untouched());
  }
};
INSTANTIATE_TEST_SUITE_P(Types, SegmentAttentionTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(SegmentAttentionTest, EveryHeadWidth) {
  std::uint64_t seed = 1;
  for (const std::int64_t head_dim : {2, 16, 20, 28, 40, 64, 80, 128})
    check({0, 24, 29}, 3, head_dim, seed++);
}

// Segments of few rows and of many, which a GPU takes differently; and heads that its matrix units refuse.
TEST_P(SegmentAttentionTest, RotatedIsWhatRotatingFirstGives) {
  for (const std::int64_t head_dim : {16, 20, 80, 128})
    for (const std::vector<std::int32_t>& bounds :
         {std::vector<std::int32_t>{0, 64, 128, 139, 140}, {0, 3, 130}, {0, 129, 333}}) {
      Random random(static_cast<std::uint64_t>(head_dim));
      const std::int64_t rows = bounds.back(), cols = 3 * head_dim;
      const TestMatrix qkv = TestMatrix::random(GetParam(), rows, 3 * cols, random, 2, 8);
      TestMatrix cos(DType::f32, rows, head_dim / 2), sin(DType::f32, rows, head_dim / 2);
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < head_dim / 2; ++j) {
          const auto angle = static_cast<float>(i * (j + 1)) * 0.1F;
          cos.set(i, j, std::cos(angle));
          sin.set(i, j, std::sin(angle));
        }
      Stream stream = test_stream(2);
      const OnDevice c(stream, cos), s(stream, sin);
      const SegmentPlan plan(stream, bounds);
      TestMatrix wanted(GetParam(), rows, cols, 8), got(GetParam(), rows, cols, 8);
      {
        TestMatrix rotated = qkv;
        const OnDevice all(stream, rotated);
        OnDevice result(stream, wanted);
        rope(stream, all.view().columns(0, 2 * cols), head_dim, c.view().row<float>(0),
             s.view().row<float>(0));
        segment_attention(stream, all.view().columns(0, cols), all.view().columns(cols, cols),
                          all.view().columns(2 * cols, cols), plan, head_dim, 0.2F, result);
        result.fetch();
      }
      TestMatrix plain = qkv;
      const OnDevice all(stream, plain);
      OnDevice result(stream, got);
      rotated_segment_attention(stream, all.view().columns(0, cols), all.view().columns(cols, cols),
                                all.view().columns(2 * cols, cols), c.view().row<float>(0),
                                s.view().row<float>(0), plan, head_dim, 0.2F, result);
      result.fetch();
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_NEAR(got.get(i, j), wanted.get(i, j), tolerance_of(GetParam()))
              << head_dim << ": " << i << ", " << j;
      EXPECT_TRUE(got.gaps_untouched());
    }
}

TEST_P(SegmentAttentionTest, SegmentsOfOneRowAndOfNone) {
  check({0, 1}, 2, 20, 20);
  check({0, 1, 2, 3}, 2, 20, 21);
  check({0, 0, 5, 5, 5, 9, 9}, 2, 20, 22);
}

// Around the tiles of 256 rows and 512 keys.
TEST_P(SegmentAttentionTest, CountsAroundEveryBoundary) {
  std::uint64_t seed = 30;
  for (const std::int32_t count : {255, 256, 257, 511, 512, 513})
    check({0, 3, count + 3, count + 70}, 1, 20, seed++);
  check({0, 1100}, 1, 12, seed);
}

TEST_P(SegmentAttentionTest, OneThreadAndSeveralAgree) {
  for (const int threads : {1, 3}) check({0, 64, 100, 164, 300}, 4, 20, 50, threads);
}

TEST_P(SegmentAttentionTest, NotANumberStaysInItsSegmentAndHead) {
  Random random(60);
  TestMatrix q = TestMatrix::random(GetParam(), 30, 40, random);
  TestMatrix k = TestMatrix::random(GetParam(), 30, 40, random);
  TestMatrix v = TestMatrix::random(GetParam(), 30, 40, random);
  v.set(12, 25, std::nanf(""));
  TestMatrix out(GetParam(), 30, 40);
  const std::vector<std::int32_t> bounds = {0, 10, 20, 30};
  Stream stream = test_stream(2);
  OnDevice result(stream, out);
  segment_attention(stream, OnDevice(stream, q), OnDevice(stream, k), OnDevice(stream, v),
                    SegmentPlan(stream, bounds), 20, 0.2F, result);
  result.fetch();
  for (std::int64_t i = 0; i < 30; ++i)
    for (std::int64_t j = 0; j < 40; ++j)
      EXPECT_EQ(std::isnan(out.get(i, j)), i / 10 == 1 && j == 25) << i << ", " << j;
}

TEST_P(SegmentAttentionTest, NoRowsWriteNothing) {
  TestMatrix none(GetParam(), 0, 40), out(GetParam(), 0, 40);
  Stream stream = Stream::cpu(1);
  EXPECT_NO_THROW(segment_attention(stream, none.view(), none.view(), none.view(),
                                    SegmentPlan(stream, std::vector<std::int32_t>{0}), 20, 1.0F, out.view()));
}

TEST_P(SegmentAttentionTest, WhatDoesNotFitIsRefused) {
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  TestMatrix x(GetParam(), 4, 40), shorter(GetParam(), 3, 40), narrow(GetParam(), 4, 20),
      foreign(other, 4, 40), out(GetParam(), 4, 40);
  Stream stream = Stream::cpu(1);
  const auto refused = [&](ConstMatrix q, ConstMatrix k, ConstMatrix v, Matrix result,
                           const std::vector<std::int32_t>& bounds, std::int64_t head_dim) {
    EXPECT_THROW(segment_attention(stream, q, k, v, SegmentPlan(stream, bounds), head_dim, 1.0F, result),
                 std::invalid_argument);
  };
  const std::vector<std::int32_t> all = {0, 4};
  refused(foreign.view(), x.view(), x.view(), out.view(), all, 20);
  refused(x.view(), foreign.view(), x.view(), out.view(), all, 20);
  refused(x.view(), x.view(), foreign.view(), out.view(), all, 20);
  refused(x.view(), x.view(), x.view(), foreign.view(), all, 20);
  refused(x.view(), shorter.view(), x.view(), out.view(), all, 20);
  refused(x.view(), x.view(), narrow.view(), out.view(), all, 20);
  refused(x.view(), x.view(), x.view(), shorter.view(), all, 20);
  for (const std::int64_t head_dim : {0, -20, 17})
    refused(x.view(), x.view(), x.view(), out.view(), all, head_dim);
  for (const std::vector<std::int32_t>& bounds :
       {std::vector<std::int32_t>{}, {0}, {0, 3}, {1, 4}, {0, 3, 2, 4}, {0, 5}})
    refused(x.view(), x.view(), x.view(), out.view(), bounds, 20);
  EXPECT_THROW(rotated_segment_attention(stream, x.view(), x.view(), x.view(), nullptr, nullptr,
                                         SegmentPlan(stream, all), 5, 1.0F, out.view()),
               std::invalid_argument);
  EXPECT_TRUE(out.row_untouched(0));
}

}  // namespace
}  // namespace vigil::kernels
