#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/attention.h"
#include "kernels/attention/attention_reference.h"
#include "kernels/device/buffer.h"
#include "kernels/random/random.h"
#include "kernels/rms_norm/rms_norm.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/pages.h"

namespace vigil::kernels {
namespace {

std::vector<std::int32_t> every(std::int64_t count, std::int64_t step) {
  std::vector<std::int32_t> own;
  for (std::int64_t i = (count - 1) % step; i < count; i += step) own.push_back(static_cast<std::int32_t>(i));
  return own;
}

struct Heads {
  std::int64_t kv, group, dim;
};

/// Runs `paged_attention` on the device under test.
void attend(Stream& stream, const TestMatrix& q, const Pages& pages,
            std::span<const AttentionSegment> segments, float scale, TestMatrix& out) {
  const Mirror memory(stream, pages.bytes());
  OnDevice there(stream, out);
  paged_attention(stream, OnDevice(stream, q), pages.layer_in(memory),
                  PagedPlan(stream, segments, pages.layer(), q.cols() / pages.layer().head_dim), scale,
                  there);
  there.fetch();
}

/// |error| <= this times Σ p |v|: in f32 sums of products and the exponential of scores of a few units; in
/// bf16 the rounding of weights, of their total's counterpart, and of the result, half a unit in the last
/// place each.
double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 3 * 0x1p-8 : 1e-5;
}

void expect_reference(const TestMatrix& q, const Pages& pages, const std::vector<AttentionSegment>& segments,
                      float scale, const TestMatrix& out) {
  const std::int64_t head_dim = pages.layer().head_dim;
  for (std::size_t s = 0; s < segments.size(); ++s)
    for (std::size_t i = 0; i < segments[s].own.size(); ++i)
      for (std::int64_t head = 0; head < q.cols() / head_dim; ++head) {
        const auto expected = reference::paged_attention(q.view(), pages.layer(), segments[s], scale,
                                                         static_cast<std::int64_t>(i), head);
        for (std::int64_t d = 0; d < head_dim; ++d) {
          const auto at = static_cast<std::size_t>(d);
          ASSERT_NEAR(out.get(segments[s].first_row + static_cast<std::int64_t>(i), head * head_dim + d),
                      expected.value[at], tolerance_of(pages.layer().dtype) * expected.magnitude[at])
              << "segment " << s << ", query " << i << " of " << segments[s].own.size() << ", "
              << segments[s].keys.size() << " keys, head " << head << ", element " << d;
        }
      }
}

class PagedAttentionTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT(GetParam()); }

  /// One segment of `count` live keys, of which those in `own` ask.
  void check(Heads heads, std::int64_t page_tokens, std::int64_t count, const std::vector<std::int32_t>& own,
             std::uint64_t seed) {
    Random random(seed);
    const std::int64_t start = page_tokens / 2;
    const std::int64_t page_count = (start + count + page_tokens - 1) / page_tokens + 1;
    Pages pages(GetParam(), page_count, page_tokens, heads.kv, heads.dim);
    const auto slots = scattered_slots(count, start, page_tokens, page_count, random);
    // Keys past the last query stay not a number: nobody may look at them.
    for (std::int32_t j = 0; j <= own.back(); ++j) pages.fill(slots[static_cast<std::size_t>(j)], random);
    const std::int64_t cols = heads.kv * heads.group * heads.dim;
    const auto rows = static_cast<std::int64_t>(own.size());
    const TestMatrix q = TestMatrix::random(GetParam(), rows, cols, random, 3, 4);
    TestMatrix out(GetParam(), rows, cols, 6);
    const float scale = 1.0F / std::sqrt(static_cast<float>(heads.dim));
    const std::vector<AttentionSegment> segments = {{slots, own, 0}};
    Stream stream = test_stream(2);
    attend(stream, q, pages, segments, scale, out);
    expect_reference(q, pages, segments, scale, out);
    EXPECT_TRUE(out.gaps_untouched());
  }
};
INSTANTIATE_TEST_SUITE_P(Types, PagedAttentionTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(PagedAttentionTest, DecodesAtEveryHeadWidthAndGrouping) {
  std::uint64_t seed = 1;
  for (const std::int64_t dim : {2, 20, 40, 64, 80, 128})
    for (const std::int64_t group : {1, 2, 7})
      for (const std::int64_t kv : {1, 2}) check({kv, group, dim}, 16, 61, {60}, seed++);
}

TEST_P(PagedAttentionTest, PrefillsAtEveryHeadWidthAndGrouping) {
  std::uint64_t seed = 100;
  for (const std::int64_t dim : {20, 64, 80, 128})
    for (const std::int64_t group : {1, 3, 7}) check({2, group, dim}, 16, 43, every(43, 1), seed++);
}

// Around pages, the padding of tiles, and the tiles themselves (64 and 512 keys, 256 rows).
TEST_P(PagedAttentionTest, CountsAroundEveryBoundary) {
  std::uint64_t seed = 200;
  for (const std::int64_t count : {1, 2, 15, 16, 17, 63, 64, 65, 127, 511, 512, 513, 1025}) {
    check({1, 1, 20}, 16, count, {static_cast<std::int32_t>(count - 1)}, seed++);
    check({1, 2, 20}, 64, count, every(count, 1), seed++);
    check({1, 7, 20}, 1, count, every(count, 5), seed++);
  }
}

// A refresh: some old tokens ask again among keys that stay, and keys after the last of them are none of its
// business.
TEST_P(PagedAttentionTest, AnyAscendingSubsetAsks) {
  check({2, 2, 40}, 16, 100, {0}, 300);
  check({2, 2, 40}, 16, 100, {0, 99}, 301);
  check({2, 2, 40}, 16, 100, {3, 4, 5, 31, 32, 64, 90}, 302);
  check({1, 7, 20}, 64, 700, {0, 1, 2, 300, 511, 512, 513, 640}, 303);
  check({1, 7, 20}, 64, 700, every(700, 2), 304);
}

TEST_P(PagedAttentionTest, OneKeyIsItsValue) {
  Random random(1);
  Pages pages(GetParam(), 1, 4, 2, 20);
  pages.fill(3, random, 5);
  const TestMatrix q = TestMatrix::random(GetParam(), 1, 80, random, 100);
  TestMatrix out(GetParam(), 1, 80);
  const std::vector<std::int32_t> keys = {3}, own = {0};
  Stream stream = test_stream();
  attend(stream, q, pages, std::vector<AttentionSegment>{{keys, own, 0}}, 1.0F, out);
  for (std::int64_t head = 0; head < 4; ++head)
    for (std::int64_t d = 0; d < 20; ++d)
      EXPECT_EQ(out.get(0, head * 20 + d), pages.get(3, head / 2, d, true));
}

// Scores of thousands: a softmax without a running maximum would overflow, one that does not rescale would
// keep the wrong key.
TEST_P(PagedAttentionTest, TheLargestOfHugeScoresWins) {
  constexpr std::int64_t kCount = 1100;
  for (const bool ascending : {true, false}) {
    Random random(2);
    Pages pages(GetParam(), kCount / 16 + 1, 16, 1, 20);
    std::vector<std::int32_t> keys(kCount);
    std::iota(keys.begin(), keys.end(), 0);
    for (std::int64_t slot = 0; slot < kCount; ++slot) {
      pages.fill(slot, random);
      // bf16 counts in steps of 4 below 1024.
      const std::int64_t height = (ascending ? slot : kCount - 1 - slot) / 64 * 32;
      for (std::int64_t d = 0; d < 20; ++d)
        pages.set(slot, 0, d, false, d == 0 ? static_cast<float>(height) : 0.0F);
    }
    TestMatrix q(GetParam(), 1, 20);
    for (std::int64_t d = 0; d < 20; ++d) q.set(0, d, d == 0 ? 10.0F : 0.0F);
    TestMatrix out(GetParam(), 1, 20);
    const std::vector<std::int32_t> own = {kCount - 1};
    const std::vector<AttentionSegment> segments = {{keys, own, 0}};
    Stream stream = test_stream(1);
    attend(stream, q, pages, segments, 1.0F, out);
    expect_reference(q, pages, segments, 1.0F, out);
  }
}

// Prompts of several windows in one pass, an empty request among them, rows that belong to nobody between
// them.
TEST_P(PagedAttentionTest, SegmentsKeepToThemselves) {
  Random random(3);
  const Heads heads{2, 3, 20};
  Pages pages(GetParam(), 40, 16, heads.kv, heads.dim);
  const auto slots = scattered_slots(600, 0, 16, 40, random);
  for (const std::int32_t slot : slots) pages.fill(slot, random);
  // The first two share a prefix, as the rules of a window do.
  std::vector<std::int32_t> first(slots.begin(), slots.begin() + 120),
      second(slots.begin(), slots.begin() + 100);
  second.insert(second.end(), slots.begin() + 200, slots.begin() + 217);
  const std::vector<std::int32_t> third(slots.begin() + 300, slots.end()), nothing;
  const auto own_first = every(120, 11), own_second = every(117, 1);
  const std::vector<std::int32_t> own_third = {299};
  const std::int64_t cols = heads.kv * heads.group * heads.dim;
  const auto rows_first = static_cast<std::int64_t>(own_first.size());
  const std::vector<AttentionSegment> segments = {{second, own_second, rows_first + 2},
                                                  {nothing, nothing, 0},
                                                  {third, nothing, 5},
                                                  {first, own_first, 1},
                                                  {third, own_third, rows_first + 2 + 117}};
  const std::int64_t rows = rows_first + 2 + 117 + 1 + 1;
  const TestMatrix q = TestMatrix::random(GetParam(), rows, cols, random, 3);
  TestMatrix out(GetParam(), rows, cols, 1);
  Stream stream = test_stream(3);
  attend(stream, q, pages, segments, 0.25F, out);
  expect_reference(q, pages, segments, 0.25F, out);
  EXPECT_TRUE(out.row_untouched(0));
  EXPECT_TRUE(out.row_untouched(rows_first + 1));
  EXPECT_TRUE(out.row_untouched(rows - 1));
  EXPECT_TRUE(out.gaps_untouched());
}

// As in decoding. On a GPU the attention begins before its newest keys and values are stored, and may read
// all others by then; what comes before takes long enough for it to read these, too, if it did not wait.
TEST_P(PagedAttentionTest, SeesTheKeyThatWasStoredJustBefore) {
  constexpr Heads heads{2, 7, 128};
  constexpr std::int64_t kPage = 64;
  constexpr std::int64_t kPages = 40;
  const std::vector<std::int64_t> counts = {1, 65, 700, 128};
  const auto rows = static_cast<std::int64_t>(counts.size());
  const std::vector<float> cos(static_cast<std::size_t>(rows * heads.dim / 2), 1.0F);
  const std::vector<float> sin(cos.size(), 0.0F);
  constexpr std::int64_t kLong = 1 << 20;
  Stream stream = test_stream(2);
  const Buffer before(stream, 8 * kLong * sizeof(float)), weight(stream, kLong * sizeof(float)),
      after(stream, 8 * kLong * sizeof(bf16));
  fill_random(stream, dense(before.data(), DType::f32, 8, kLong), 1, 1);
  fill_random(stream, dense(weight.data(), DType::f32, 1, kLong), 2, 1);
  for (std::uint64_t round = 0; round < 3; ++round) {
    Random random(round);
    Pages pages(GetParam(), kPages, kPage, heads.kv, heads.dim, heads.dim);
    const auto slots = scattered_slots(kPage * kPages, 0, kPage, kPages, random);
    std::vector<std::vector<std::int32_t>> keys, own;
    std::vector<AttentionSegment> segments;
    auto next = slots.begin();
    for (const std::int64_t count : counts) {
      keys.emplace_back(next, next + count);
      own.push_back({static_cast<std::int32_t>(count - 1)});
      next += (count + kPage - 1) / kPage * kPage;
      for (std::int64_t j = 0; j + 1 < count; ++j)
        pages.fill(keys.back()[static_cast<std::size_t>(j)], random);
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      segments.push_back({keys[i], own[i], static_cast<std::int64_t>(i)});
    TestMatrix q = TestMatrix::random(GetParam(), rows, heads.kv * heads.group * heads.dim, random, 0, 8);
    TestMatrix k = TestMatrix::random(GetParam(), rows, heads.kv * heads.dim, random, 0, 8);
    const TestMatrix v = TestMatrix::random(GetParam(), rows, heads.kv * heads.dim, random, 0, 8);
    TestMatrix out(GetParam(), rows, q.cols());
    const float scale = 1.0F / std::sqrt(static_cast<float>(heads.dim));
    {
      const Mirror memory(stream, pages.bytes());
      const OnDevice q_there(stream, q), k_there(stream, k), v_there(stream, v);
      const DeviceArray<float> cos_there(stream, cos), sin_there(stream, sin);
      OnDevice there(stream, out);
      const PagedPlan plan(stream, segments, pages.layer(), heads.kv * heads.group);
      stream.synchronize();
      rms_norm(stream, dense(before.data(), DType::f32, 8, kLong), weight.as<float>(), 1e-6F,
               dense(after.data(), DType::bf16, 8, kLong));
      store_rotated(stream, q_there, k_there, v_there, cos_there.data(), sin_there.data(), plan,
                    pages.layer_in(memory));
      paged_attention(stream, q_there, pages.layer_in(memory), plan, scale, there);
      there.fetch();
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      for (std::int64_t head = 0; head < heads.kv; ++head)
        for (std::int64_t d = 0; d < heads.dim; ++d) {
          const auto row = static_cast<std::int64_t>(i);
          pages.set(keys[i].back(), head, d, false, k.get(row, head * heads.dim + d));
          pages.set(keys[i].back(), head, d, true, v.get(row, head * heads.dim + d));
        }
    expect_reference(q, pages, segments, scale, out);
  }
}

TEST_P(PagedAttentionTest, NoSegmentsWriteNothing) {
  Random random(4);
  Pages pages(GetParam(), 1, 16, 1, 20);
  const TestMatrix q = TestMatrix::random(GetParam(), 2, 20, random);
  TestMatrix out(GetParam(), 2, 20);
  Stream stream = test_stream(2);
  attend(stream, q, pages, {}, 1.0F, out);
  EXPECT_TRUE(out.row_untouched(0));
  EXPECT_TRUE(out.row_untouched(1));
}

TEST_P(PagedAttentionTest, ThreadsDoNotChangeTheResult) {
  Random random(5);
  const Heads heads{2, 7, 20};
  Pages pages(GetParam(), 40, 16, heads.kv, heads.dim);
  const auto slots = scattered_slots(600, 7, 16, 40, random);
  for (const std::int32_t slot : slots) pages.fill(slot, random);
  const auto own = every(600, 3);
  const auto rows = static_cast<std::int64_t>(own.size());
  const TestMatrix q = TestMatrix::random(GetParam(), rows, 280, random);
  TestMatrix one(GetParam(), rows, 280), three(GetParam(), rows, 280);
  const std::vector<AttentionSegment> segments = {{slots, own, 0}};
  Stream single = test_stream(1), several = test_stream(3);
  attend(single, q, pages, segments, 0.2F, one);
  attend(several, q, pages, segments, 0.2F, three);
  EXPECT_EQ(one.bytes(), three.bytes());
}

TEST_P(PagedAttentionTest, WhatDoesNotFitIsRefused) {
  Random random(6);
  Pages pages(GetParam(), 1, 16, 2, 20);
  for (std::int64_t slot = 0; slot < 16; ++slot) pages.fill(slot, random);
  const DType other = GetParam() == DType::f32 ? DType::bf16 : DType::f32;
  TestMatrix q(GetParam(), 2, 80), out(GetParam(), 2, 80), q_other(other, 2, 80), q_odd(GetParam(), 2, 60),
      out_odd(GetParam(), 2, 60), long_out(GetParam(), 3, 80);
  const std::vector<std::int32_t> keys = {0, 1, 2};
  Stream stream = Stream::cpu(1);
  const auto refused = [&](ConstMatrix queries, Matrix result, const std::vector<std::int32_t>& own,
                           std::int64_t first_row = 0) {
    const std::vector<AttentionSegment> segments = {{keys, own, first_row}};
    EXPECT_THROW(paged_attention(stream, queries, pages.layer(),
                                 PagedPlan(stream, segments, pages.layer(), 4), 1.0F, result),
                 std::invalid_argument);
  };
  refused(q_other.view(), out.view(), {2});
  refused(q.view(), q_other.view(), {2});
  refused(q_odd.view(), out_odd.view(), {2});
  refused(q.view(), long_out.view(), {2});
  refused(q.view(), out.view(), {3});
  refused(q.view(), out.view(), {-1});
  refused(q.view(), out.view(), {1, 1});
  refused(q.view(), out.view(), {2, 1});
  refused(q.view(), out.view(), {0, 1, 2});
  refused(q.view(), out.view(), {1, 2}, 1);
  refused(q.view(), out.view(), {2}, -1);
  const std::vector<std::int32_t> own = {2};
  const std::vector<AttentionSegment> twice = {{keys, own, 0}, {keys, own, 0}};
  EXPECT_THROW(PagedPlan(stream, twice, pages.layer(), 4), std::invalid_argument)
      << "two segments want to write one row";
  EXPECT_THROW(PagedPlan(stream, {}, pages.layer(), 3), std::invalid_argument);
  KvLayer small_pages = pages.layer();
  small_pages.page_tokens = 8;
  EXPECT_THROW(paged_attention(stream, q.view(), pages.layer(),
                               PagedPlan(stream, {twice.data(), 1}, small_pages, 4), 1.0F, out.view()),
               std::invalid_argument)
      << "pages of another size";
  EXPECT_TRUE(out.row_untouched(0));
}

}  // namespace
}  // namespace vigil::kernels
