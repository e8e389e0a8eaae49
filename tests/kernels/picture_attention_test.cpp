#include "kernels/attention/picture_attention.h"

#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/attention_reference.h"
#include "tests/kernels/on_device.h"

namespace vigil::kernels {
namespace {

double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 3 * 0x1p-8 : 1e-5;
}

class PictureAttentionTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT(GetParam()); }

  /// A picture of so many rows in two layers of memory with something in it, and those rows that a pass
  /// brings.
  struct Picture {
    std::int64_t rows;
    std::vector<std::int32_t> places;
  };

  static constexpr std::int64_t kLayers = 2;

  /// Queries, keys and values as columns of one product. The memory of layer 1 alone may change.
  void check(const std::vector<Picture>& pictures, std::int64_t heads, std::int64_t head_dim,
             std::int64_t gap = 8) {
    Random random(static_cast<std::uint64_t>(head_dim));
    const std::int64_t cols = heads * head_dim;
    std::vector<std::int32_t> bounds = {0}, places;
    std::vector<TestMatrix> memory;
    for (const Picture& picture : pictures) {
      places.insert(places.end(), picture.places.begin(), picture.places.end());
      bounds.push_back(static_cast<std::int32_t>(places.size()));
      memory.push_back(TestMatrix::random(GetParam(), kLayers * 2 * picture.rows, cols, random));
    }
    const auto rows = static_cast<std::int64_t>(places.size());
    const TestMatrix qkv = TestMatrix::random(GetParam(), rows, 3 * cols, random, 2, gap);
    TestMatrix out(GetParam(), rows, cols, gap);

    // What the memory should be afterwards.
    std::vector<TestMatrix> wanted = memory;
    for (std::size_t p = 0; p < pictures.size(); ++p)
      for (std::int32_t i = bounds[p]; i < bounds[p + 1]; ++i)
        for (std::int64_t j = 0; j < cols; ++j) {
          const std::int64_t key = 2 * pictures[p].rows + places[static_cast<std::size_t>(i)];
          wanted[p].set(key, j, qkv.get(i, cols + j));
          wanted[p].set(key + pictures[p].rows, j, qkv.get(i, 2 * cols + j));
        }

    Stream stream = test_stream(2);
    std::vector<OnDevice> there;
    there.reserve(memory.size());
    std::vector<PictureKeys> keys;
    for (std::size_t p = 0; p < pictures.size(); ++p) {
      there.emplace_back(stream, memory[p]);
      keys.push_back({there.back().view().data, 2 * pictures[p].rows * cols, pictures[p].rows});
    }
    const PicturePlan plan(stream, keys, bounds, places);
    const float scale = 1.0F / std::sqrt(static_cast<float>(head_dim));
    const OnDevice all(stream, qkv);
    OnDevice result(stream, out);
    store_keys(stream, all.view().columns(cols, cols), all.view().columns(2 * cols, cols), plan, 1);
    picture_attention(stream, all.view().columns(0, cols), plan, 1, head_dim, scale, result);
    result.fetch();
    for (OnDevice& each : there) each.fetch();

    for (std::size_t p = 0; p < pictures.size(); ++p) {
      for (std::int64_t i = 0; i < memory[p].rows(); ++i)
        for (std::int64_t j = 0; j < cols; ++j)
          ASSERT_EQ(memory[p].get(i, j), wanted[p].get(i, j)) << "picture " << p << ", row " << i;
      const std::int64_t of = pictures[p].rows;
      const Matrix k = wanted[p].view().rows_from(2 * of, of), v = wanted[p].view().rows_from(3 * of, of);
      for (std::int32_t i = bounds[p]; i < bounds[p + 1]; ++i)
        for (std::int64_t head = 0; head < heads; ++head) {
          TestMatrix query(GetParam(), 1, cols);
          for (std::int64_t j = 0; j < cols; ++j) query.set(0, j, qkv.get(i, j));
          const auto expected =
              reference::segment_attention(query.view(), k, v, 0, of, head_dim, scale, 0, head);
          for (std::int64_t d = 0; d < head_dim; ++d) {
            const auto at = static_cast<std::size_t>(d);
            ASSERT_NEAR(out.get(i, head * head_dim + d), expected.value[at],
                        tolerance_of(GetParam()) * expected.magnitude[at])
                << "picture " << p << ", row " << i << ", head " << head << ", element " << d;
          }
        }
    }
    EXPECT_TRUE(out.gaps_untouched());
  }

  static std::vector<std::int32_t> every(std::int64_t rows, std::int32_t step) {
    std::vector<std::int32_t> places;
    for (std::int32_t i = 0; i < rows; i += step) places.push_back(i);
    return places;
  }
};
INSTANTIATE_TEST_SUITE_P(Types, PictureAttentionTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(PictureAttentionTest, EveryHeadWidth) {
  for (const std::int64_t head_dim : {2, 16, 20, 40, 64, 80, 128})
    for (const std::int64_t gap : {3, 8}) check({{70, every(70, 3)}, {12, {11, 0, 5}}}, 3, head_dim, gap);
}

TEST_P(PictureAttentionTest, AllRowsAndNone) {
  check({{65, every(65, 1)}, {64, {}}, {9, {8}}}, 2, 32);
  check({{5, {}}}, 2, 32);
  check({}, 2, 32);
}

// Around the tiles of 64 queries and keys of a GPU, and of 256 and 512 of a processor.
TEST_P(PictureAttentionTest, CountsAroundEveryBoundary) {
  for (const std::int64_t rows : {63, 64, 65, 127, 129, 511, 512, 513, 1024})
    check({{rows, every(rows, 2)}, {rows, every(rows, 1)}}, 1, 16);
}

TEST_P(PictureAttentionTest, NotANumberStaysInItsPicture) {
  Random random(7);
  TestMatrix memory[] = {TestMatrix::random(GetParam(), 40, 32, random),
                         TestMatrix::random(GetParam(), 40, 32, random)};
  memory[0].set(3, 1, std::nanf(""));
  const TestMatrix q = TestMatrix::random(GetParam(), 4, 32, random);
  TestMatrix out(GetParam(), 4, 32);
  Stream stream = test_stream(1);
  const OnDevice first(stream, memory[0]), second(stream, memory[1]), asked(stream, q);
  OnDevice result(stream, out);
  const std::vector<PictureKeys> keys = {{first.view().data, 0, 20}, {second.view().data, 0, 20}};
  picture_attention(
      stream, asked,
      PicturePlan(stream, keys, std::vector<std::int32_t>{0, 2, 4}, std::vector<std::int32_t>{0, 1, 0, 1}), 0,
      16, 1, result);
  result.fetch();
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 32; ++j)
      EXPECT_EQ(std::isnan(out.get(i, j)), i < 2 && j < 16) << i << ' ' << j;
}

TEST(PicturePlanTest, WhatDoesNotFitIsRefused) {
  const Stream stream = Stream::cpu(1);
  std::vector<float> memory(80);
  const std::vector<PictureKeys> one = {{memory.data(), 80, 5}};
  using Numbers = std::vector<std::int32_t>;
  EXPECT_NO_THROW(PicturePlan(stream, one, Numbers{0, 2}, Numbers{4, 0}));
  for (const auto& [bounds, places] : {std::pair<Numbers, Numbers>{{0, 2}, {0, 5}},
                                       {{0, 2}, {-1, 0}},
                                       {{0, 2}, {0}},
                                       {{1, 2}, {0, 1}},
                                       {{0, 1, 2}, {0, 1}},
                                       {{0}, {}}})
    EXPECT_THROW(PicturePlan(stream, one, bounds, places), std::invalid_argument);

  Stream mine = Stream::cpu(1);
  const PicturePlan plan(stream, one, Numbers{0, 2}, Numbers{4, 0});
  TestMatrix x(DType::f32, 2, 8), longer(DType::f32, 3, 8), narrow(DType::f32, 2, 4),
      other(DType::bf16, 2, 8);
  EXPECT_THROW(store_keys(mine, longer.view(), longer.view(), plan, 0), std::invalid_argument);
  EXPECT_THROW(store_keys(mine, x.view(), narrow.view(), plan, 0), std::invalid_argument);
  EXPECT_THROW(store_keys(mine, x.view(), other.view(), plan, 0), std::invalid_argument);
  EXPECT_THROW(store_keys(mine, x.view(), x.view(), plan, -1), std::invalid_argument);
  EXPECT_THROW(picture_attention(mine, longer.view(), plan, 0, 8, 1, longer.view()), std::invalid_argument);
  EXPECT_THROW(picture_attention(mine, x.view(), plan, 0, 3, 1, x.view()), std::invalid_argument);
  EXPECT_THROW(picture_attention(mine, x.view(), plan, 0, 8, 1, other.view()), std::invalid_argument);
}

}  // namespace
}  // namespace vigil::kernels
