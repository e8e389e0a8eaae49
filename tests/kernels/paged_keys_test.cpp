#include "kernels/paged_keys/paged_keys.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/paged_keys/paged_keys_reference.h"
#include "kernels/rope/rope.h"
#include "kernels/rope/rope_reference.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/pages.h"

namespace vigil::kernels {
namespace {

constexpr std::int64_t kPages = 9;
constexpr std::int64_t kPageTokens = 16;

class PagedKeysTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, PagedKeysTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

struct Shape {
  std::int64_t rows, kv_heads, head_dim;
};
// Heads that are no whole packs, one token, more rows than a block has warps.
const std::vector<Shape> kShapes{{1, 1, 2}, {5, 3, 6}, {17, 2, 20}, {70, 2, 64}, {100, 4, 128}};

std::vector<float> distances(Stream& stream, const TestMatrix& k, const std::vector<std::int32_t>& slots,
                             Pages& pages) {
  TestMatrix to(DType::f32, 1, k.rows());
  Mirror memory(stream, pages.bytes());
  OnDevice there(stream, to);
  key_distances(stream, OnDevice(stream, k), DeviceArray<std::int32_t>(stream, slots).data(),
                pages.layer_in(memory), there.view().row<float>(0));
  there.fetch();
  memory.fetch();
  std::vector<float> all;
  for (std::int64_t i = 0; i < k.rows(); ++i) all.push_back(to.get(0, i));
  return all;
}

TEST_P(PagedKeysTest, DistancesAreThoseOfTheReference) {
  std::uint64_t seed = 1;
  for (const Shape& now : kShapes) {
    Random random(seed++);
    Pages pages(GetParam(), kPages, kPageTokens, now.kv_heads, now.head_dim);
    auto slots = scattered_slots(now.rows, 3, kPageTokens, kPages, random);
    for (const std::int32_t slot : slots) pages.fill(slot, random, 4);
    if (slots.size() > 2) slots.back() = slots.front();
    const TestMatrix k = TestMatrix::random(GetParam(), now.rows, now.kv_heads * now.head_dim, random, 4, 7);
    const auto before = pages.bytes();
    Stream stream = test_stream(2);
    const std::vector<float> found = distances(stream, k, slots, pages);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const double expected =
          reference::key_distance(k.view(), static_cast<std::int64_t>(i), pages.layer(), slots[i]);
      ASSERT_NEAR(found[i], expected, 1e-5 * expected) << i << " of heads of " << now.head_dim;
      ASSERT_GT(expected, 0);
    }
    EXPECT_EQ(pages.bytes(), before);
  }
}

// What ranks tokens: a key that is the one in the pages is at 0, not near it, and what is no number tells so.
TEST_P(PagedKeysTest, EqualKeysAreAtZeroAndWhatIsNoNumberIsNoDistance) {
  Random random(9);
  Pages pages(GetParam(), kPages, kPageTokens, 2, 20);
  const auto slots = scattered_slots(40, 0, kPageTokens, kPages, random);
  TestMatrix k(GetParam(), 40, 40);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    pages.fill(slots[i], random);
    for (std::int64_t j = 0; j < 40; ++j)
      k.set(static_cast<std::int64_t>(i), j, pages.get(slots[i], j / 20, j % 20, false));
  }
  k.set(7, 39, k.get(7, 39) + 2);
  pages.poison(slots[11]);
  Stream stream = test_stream(2);
  const std::vector<float> found = distances(stream, k, slots, pages);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i == 7) {
      EXPECT_NEAR(found[i], 4, 0.1);
    } else if (i == 11) {
      EXPECT_TRUE(std::isnan(found[i]));
    } else {
      EXPECT_EQ(found[i], 0) << i;
    }
  }
}

/// As M-RoPE has them: runs of pairs by the temporal, the height and the width axis.
std::vector<RopeFrequency> sections(std::int64_t pairs) {
  std::vector<RopeFrequency> frequencies;
  for (std::int64_t j = 0; j < pairs; ++j)
    frequencies.push_back(
        {1.0F / std::pow(1e4F, static_cast<float>(j) / static_cast<float>(pairs)),
         static_cast<std::int32_t>(std::min<std::int64_t>(2, j * 4 / std::max<std::int64_t>(pairs, 1)))});
  return frequencies;
}

struct Angles {
  std::vector<float> cos, sin;
  Angles(const std::vector<RopePosition>& positions, const std::vector<RopeFrequency>& frequencies)
      : cos(positions.size() * frequencies.size()), sin(cos.size()) {
    Stream stream = Stream::cpu(1);
    rope_angles(stream, positions.data(), static_cast<std::int64_t>(positions.size()), frequencies.data(),
                static_cast<std::int64_t>(frequencies.size()), RopeAngles::wide, cos.data(), sin.data());
  }
};

void rotate(Stream& stream, const std::vector<std::int32_t>& slots, const Angles& angles, Pages& pages) {
  Mirror memory(stream, pages.bytes());
  rotate_keys(stream, DeviceArray<std::int32_t>(stream, slots).data(),
              static_cast<std::int64_t>(slots.size()), DeviceArray<float>(stream, angles.cos).data(),
              DeviceArray<float>(stream, angles.sin).data(), pages.layer_in(memory));
  memory.fetch();
}

std::vector<RopePosition> somewhere(std::size_t count, Random& random, std::int64_t most) {
  std::vector<RopePosition> positions;
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis = [&] { return static_cast<std::int32_t>(random.below(2 * most) - most); };
    positions.push_back({axis(), axis(), axis()});
  }
  return positions;
}

// Equation 5: R(p + d) k = R(d) R(p) k, each axis by a difference of its own, backwards too.
TEST_P(PagedKeysTest, TurnedKeysAreThoseOfTheirNewPositions) {
  std::uint64_t seed = 20;
  for (const Shape& now : kShapes)
    for (const std::int64_t most : {3, 100'000'000}) {
      Random random(seed++);
      const auto frequencies = sections(now.head_dim / 2);
      auto slots = scattered_slots(kPages * kPageTokens, 0, kPageTokens, kPages, random);
      slots.resize(static_cast<std::size_t>(now.rows));
      const auto from = somewhere(slots.size(), random, most), by = somewhere(slots.size(), random, most);
      auto to = from;
      for (std::size_t i = 0; i < to.size(); ++i)
        for (std::size_t axis = 0; axis < 3; ++axis) to[i][axis] += by[i][axis];
      const TestMatrix raw = TestMatrix::random(DType::f32, now.rows, now.kv_heads * now.head_dim, random, 4);
      Pages pages(GetParam(), kPages, kPageTokens, now.kv_heads, now.head_dim);
      const Angles there(from, frequencies), turn(by, frequencies), here(to, frequencies);
      for (std::int64_t i = 0; i < now.rows; ++i) {
        const auto key = reference::rope(raw.view(), now.head_dim, there.cos.data(), there.sin.data(), i);
        for (std::int64_t j = 0; j < raw.cols(); ++j)
          pages.set(slots[static_cast<std::size_t>(i)], j / now.head_dim, j % now.head_dim, false,
                    static_cast<float>(key[static_cast<std::size_t>(j)]));
      }
      const auto before = pages.bytes();
      Stream stream = test_stream(2);
      rotate(stream, slots, turn, pages);
      for (std::int64_t i = 0; i < now.rows; ++i) {
        const auto key = reference::rope(raw.view(), now.head_dim, here.cos.data(), here.sin.data(), i);
        for (std::int64_t j = 0; j < raw.cols(); ++j) {
          const std::int64_t d = j % now.head_dim, half = now.head_dim / 2;
          const double value = key[static_cast<std::size_t>(j)];
          const double partner = key[static_cast<std::size_t>(d < half ? j + half : j - half)];
          // Rounded where it was, turned by angles of f32, rounded where it is.
          ASSERT_NEAR(pages.get(slots[static_cast<std::size_t>(i)], j / now.head_dim, d, false), value,
                      8e-6 + 1.01 * rounding_of(GetParam()) * (std::hypot(value, partner) + std::abs(value)))
              << i << ", " << j << " of heads of " << now.head_dim << " by up to " << most;
        }
      }
      // Nothing else was written.
      std::size_t differ = 0;
      for (std::size_t at = 0; at < before.size(); at += size_of(GetParam()))
        differ += std::equal(before.begin() + static_cast<std::ptrdiff_t>(at),
                             before.begin() + static_cast<std::ptrdiff_t>(at + size_of(GetParam())),
                             pages.bytes().begin() + static_cast<std::ptrdiff_t>(at))
                      ? 0U
                      : 1U;
      EXPECT_LE(differ, static_cast<std::size_t>(raw.rows() * raw.cols()));
      for (const std::int32_t slot : slots)
        for (std::int64_t head = 0; head < now.kv_heads; ++head)
          ASSERT_TRUE(std::isnan(pages.get(slot, head, 0, true))) << "a value was written";
    }
}

TEST_P(PagedKeysTest, NoDifferenceKeepsEveryBit) {
  Random random(40);
  Pages pages(GetParam(), kPages, kPageTokens, 2, 20);
  const auto slots = scattered_slots(50, 5, kPageTokens, kPages, random);
  for (const std::int32_t slot : slots) pages.fill(slot, random, 100);
  // Zeros of both signs beside numbers of both, the largest, the smallest, none.
  const std::vector<float> ugly{-0.0F,     0.0F,       std::numeric_limits<float>::infinity(),
                                0x1p-126F, -0x1p-133F, std::numeric_limits<float>::quiet_NaN()};
  for (std::size_t i = 0; i < ugly.size(); ++i)
    for (const std::int64_t pair : {0, 7}) {
      pages.set(slots[i], 0, pair, false, ugly[i]);
      pages.set(slots[i], 1, pair + 10, false, ugly[i]);
    }
  const auto before = pages.bytes();
  Stream stream = test_stream(2);
  rotate(stream, slots, Angles(std::vector<RopePosition>(50), sections(10)), pages);
  EXPECT_EQ(pages.bytes(), before);
  // One axis alone: the pairs of the others keep theirs, bit for bit.
  const Pages whole = pages;
  const auto frequencies = sections(10);
  rotate(stream, slots, Angles(std::vector<RopePosition>(50, {0, 3, 0}), frequencies), pages);
  int turning = 0, turned = 0;
  for (std::size_t i = ugly.size(); i < slots.size(); ++i)
    for (std::int64_t d = 0; d < 20; ++d) {
      const bool differs = pages.get(slots[i], 1, d, false) != whole.get(slots[i], 1, d, false);
      const bool turns = frequencies[static_cast<std::size_t>(d % 10)].axis == 1;
      ASSERT_TRUE(turns || !differs) << i << ", " << d;
      turning += turns ? 1 : 0;
      turned += differs ? 1 : 0;
    }
  EXPECT_GT(turned, turning * 9 / 10);
}

TEST_P(PagedKeysTest, ThereAndBackIsWhereItWas) {
  Random random(50);
  Pages pages(GetParam(), kPages, kPageTokens, 2, 64);
  const auto slots = scattered_slots(60, 0, kPageTokens, kPages, random);
  for (const std::int32_t slot : slots) pages.fill(slot, random, 4);
  const Pages before = pages;
  const auto by = somewhere(slots.size(), random, 1'000'000);
  auto back = by;
  for (RopePosition& position : back)
    for (std::int32_t& axis : position) axis = -axis;
  Stream stream = test_stream(2);
  rotate(stream, slots, Angles(by, sections(32)), pages);
  rotate(stream, slots, Angles(back, sections(32)), pages);
  for (const std::int32_t slot : slots)
    for (std::int64_t head = 0; head < 2; ++head)
      for (std::int64_t d = 0; d < 64; ++d) {
        const double value = before.get(slot, head, d, false);
        const double partner = before.get(slot, head, d < 32 ? d + 32 : d - 32, false);
        ASSERT_NEAR(pages.get(slot, head, d, false), value,
                    8e-6 + 1.01 * rounding_of(GetParam()) * (std::hypot(value, partner) + std::abs(value)));
        ASSERT_EQ(pages.get(slot, head, d, true), before.get(slot, head, d, true)) << "values do not turn";
      }
}

// Of layers that share pages, as a cache has them: [layers, key and value] in each page.
TEST_P(PagedKeysTest, KeysOfAllLayersAsRows) {
  std::uint64_t seed = 60;
  for (const Shape& now : kShapes) {
    Random random(seed++);
    constexpr std::int64_t kLayers = 3;
    const std::int64_t layer_stride = 2 * now.kv_heads * kPageTokens * now.head_dim;
    const std::int64_t page_stride = kLayers * layer_stride;
    const std::int64_t cols = now.kv_heads * now.head_dim;
    TestMatrix pages = TestMatrix::random(GetParam(), 1, kPages * page_stride, random);
    const auto slots = scattered_slots(now.rows, 2, kPageTokens, kPages, random);
    TestMatrix to(GetParam(), kLayers * now.rows, cols, 5);
    Stream stream = test_stream(2);
    const OnDevice memory(stream, pages);
    OnDevice rows(stream, to);
    read_keys(stream, DeviceArray<std::int32_t>(stream, slots).data(), now.rows,
              {memory.view().data, GetParam(), kPages, page_stride, layer_stride / 2, kPageTokens,
               now.kv_heads, now.head_dim},
              kLayers, layer_stride, rows);
    rows.fetch();
    for (std::int64_t row = 0; row < to.rows(); ++row)
      for (std::int64_t j = 0; j < cols; ++j) {
        const std::int64_t slot = slots[static_cast<std::size_t>(row % now.rows)];
        const std::int64_t at = slot / kPageTokens * page_stride + row / now.rows * layer_stride +
                                (j / now.head_dim * kPageTokens + slot % kPageTokens) * now.head_dim +
                                j % now.head_dim;
        ASSERT_EQ(to.get(row, j), pages.get(0, at)) << row << ", " << j << " of heads of " << now.head_dim;
      }
    EXPECT_TRUE(to.gaps_untouched());
  }
}

TEST_P(PagedKeysTest, WhatDoesNotFitIsRefused) {
  Pages pages(GetParam(), 1, 16, 2, 20);
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  Stream stream = Stream::cpu(1);
  const std::int32_t slots[] = {0, 1};
  float to[2] = {};
  const TestMatrix other_type(other, 2, 40), narrow(GetParam(), 2, 20), nothing(GetParam(), 0, 40);
  EXPECT_THROW(key_distances(stream, other_type.view(), slots, pages.layer(), to), std::invalid_argument);
  EXPECT_THROW(key_distances(stream, narrow.view(), slots, pages.layer(), to), std::invalid_argument);
  EXPECT_NO_THROW(key_distances(stream, nothing.view(), nullptr, pages.layer(), nullptr));
  KvLayer odd = pages.layer(), integers = pages.layer(), none = pages.layer();
  odd.head_dim = 5;
  integers.dtype = DType::i32;
  none.kv_heads = 0;
  for (const KvLayer& layer : {odd, integers, none})
    EXPECT_THROW(rotate_keys(stream, slots, 1, to, to, layer), std::invalid_argument);
  EXPECT_THROW(rotate_keys(stream, slots, -1, to, to, pages.layer()), std::invalid_argument);
  EXPECT_NO_THROW(rotate_keys(stream, nullptr, 0, nullptr, nullptr, pages.layer()));
  TestMatrix rows(GetParam(), 2, 40), three(GetParam(), 3, 40), thin(GetParam(), 2, 20), wrong(other, 2, 40);
  for (TestMatrix* bad : {&three, &thin, &wrong})
    EXPECT_THROW(read_keys(stream, slots, 2, pages.layer(), 1, 0, bad->view()), std::invalid_argument);
  EXPECT_THROW(read_keys(stream, slots, 2, pages.layer(), 0, 0, rows.view()), std::invalid_argument);
  EXPECT_THROW(read_keys(stream, slots, -1, pages.layer(), 1, 0, rows.view()), std::invalid_argument);
  EXPECT_THROW(read_keys(stream, slots, 2, none, 1, 0, rows.view()), std::invalid_argument);
  EXPECT_NO_THROW(read_keys(stream, nullptr, 0, pages.layer(), 1, 0, TestMatrix(GetParam(), 0, 40).view()));
}

}  // namespace
}  // namespace vigil::kernels
