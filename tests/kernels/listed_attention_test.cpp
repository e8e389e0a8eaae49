#include "kernels/attention/listed_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/attention/attention_reference.h"
#include "tests/kernels/cluster_table.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/pages.h"

namespace vigil::kernels {
namespace {

constexpr float kEndless = std::numeric_limits<float>::infinity();

struct Heads {
  std::int64_t kv, group, dim;
};

/// Keys (or values) of lists, no numbers past their ends.
class Lists {
 public:
  Lists(DType dtype, const Heads& heads, std::int64_t capacity, std::vector<std::int32_t> counts)
      : heads_(heads),
        capacity_(capacity),
        counts_(std::move(counts)),
        keys_(dtype, static_cast<std::int64_t>(counts_.size()) * capacity, heads.dim),
        values_(dtype, static_cast<std::int64_t>(counts_.size()) * capacity, heads.dim) {}

  void fill(Random& random) {
    for (std::int64_t list = 0; list < static_cast<std::int64_t>(counts_.size()); ++list)
      for (std::int64_t i = 0; i < count(list); ++i)
        for (std::int64_t d = 0; d < heads_.dim; ++d) {
          keys_.set(list * capacity_ + i, d, random.number());
          values_.set(list * capacity_ + i, d, random.number());
        }
  }
  std::int64_t count(std::int64_t list) const {
    if (list < 0) return 0;
    return std::clamp<std::int64_t>(counts_[static_cast<std::size_t>(list)], 0, capacity_);
  }
  std::int64_t capacity() const { return capacity_; }
  std::int64_t sequences() const { return static_cast<std::int64_t>(counts_.size()) / heads_.kv; }
  const std::vector<std::int32_t>& counts() const { return counts_; }
  /// Which lists each segment has; empty: those of its number.
  std::vector<std::int32_t> of_segment;
  /// Of a segment and KV head; -1: none.
  std::int64_t list_of(std::int64_t segment, std::int64_t head) const {
    const std::int64_t sequence =
        of_segment.empty() ? segment : of_segment[static_cast<std::size_t>(segment)];
    return sequence < 0 ? -1 : sequence * heads_.kv + head;
  }
  TestMatrix& of(bool value) { return value ? values_ : keys_; }
  const TestMatrix& of(bool value) const { return value ? values_ : keys_; }

 private:
  Heads heads_;
  std::int64_t capacity_;
  std::vector<std::int32_t> counts_;
  TestMatrix keys_, values_;
};

/// Runs it on the device under test.
void attend(Stream& stream, const TestMatrix& q, const Pages& pages,
            std::span<const AttentionSegment> segments, const Lists& lists, float scale, TestMatrix& out) {
  const Mirror memory(stream, pages.bytes());
  Values<std::int32_t> counts(stream, lists.counts());
  Values<std::int32_t> of_segment(stream, lists.of_segment);
  const OnDevice keys(stream, lists.of(false)), values(stream, lists.of(true));
  OnDevice there(stream, out);
  listed_attention(stream, OnDevice(stream, q), pages.layer_in(memory),
                   PagedPlan(stream, segments, pages.layer(), q.cols() / pages.layer().head_dim),
                   {keys.view().data, values.view().data, counts.data(), lists.sequences(), lists.capacity(),
                    lists.of_segment.empty() ? nullptr : of_segment.data()},
                   scale, there);
  there.fetch();
}

/// As paged_attention_test has it: of sums and exponentials in f32; of bf16, whose weights are rounded.
double tolerance_of(DType dtype) {
  return dtype == DType::bf16 ? 3 * 0x1p-8 : 1e-5;
}

/// Query `i` of segment `s` by the whole row of scores.
reference::Mixture wanted(const TestMatrix& q, const Pages& pages, const AttentionSegment& segment,
                          std::int64_t s, const Lists& lists, float scale, std::int64_t i,
                          std::int64_t head) {
  const KvLayer& layer = pages.layer();
  const std::int64_t kv_head = head / (q.cols() / layer.head_dim / layer.kv_heads);
  const std::int64_t paged = segment.own[static_cast<std::size_t>(i)] + 1;
  const std::int64_t list = lists.list_of(s, kv_head);
  const auto element_of = [&](std::int64_t j, std::int64_t d, bool value) {
    return double{j < paged ? pages.get(segment.keys[static_cast<std::size_t>(j)], kv_head, d, value)
                            : lists.of(value).get(list * lists.capacity() + j - paged, d)};
  };
  return reference::attend(
      paged + lists.count(list), layer.head_dim, double{scale},
      [&](std::int64_t d) { return double{q.get(segment.first_row + i, head * layer.head_dim + d)}; },
      [&](std::int64_t j, std::int64_t d) { return element_of(j, d, false); },
      [&](std::int64_t j, std::int64_t d) { return element_of(j, d, true); });
}

void expect_reference(const TestMatrix& q, const Pages& pages, const std::vector<AttentionSegment>& segments,
                      const Lists& lists, float scale, const TestMatrix& out) {
  const std::int64_t head_dim = pages.layer().head_dim;
  for (std::size_t s = 0; s < segments.size(); ++s)
    for (std::size_t i = 0; i < segments[s].own.size(); ++i)
      for (std::int64_t head = 0; head < q.cols() / head_dim; ++head) {
        const auto expected = wanted(q, pages, segments[s], static_cast<std::int64_t>(s), lists, scale,
                                     static_cast<std::int64_t>(i), head);
        for (std::int64_t d = 0; d < head_dim; ++d) {
          const auto at = static_cast<std::size_t>(d);
          ASSERT_NEAR(out.get(segments[s].first_row + static_cast<std::int64_t>(i), head * head_dim + d),
                      expected.value[at], tolerance_of(pages.layer().dtype) * expected.magnitude[at])
              << "segment " << s << ", query " << i << ", head " << head << ", element " << d;
        }
      }
}

/// Sequences of some keys each in pages, of which the last `asked` ask.
struct Case {
  Heads heads;
  std::int64_t page_tokens;
  std::vector<std::int64_t> keys;
  std::int64_t asked;
  std::int64_t capacity;
  std::vector<std::int32_t> counts;
  std::vector<std::int32_t> of_segment = {};
};

class ListedAttentionTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT(GetParam()); }

  void check(const Case& now, std::uint64_t seed) {
    Random random(seed);
    const Heads& heads = now.heads;
    const std::int64_t all = std::accumulate(now.keys.begin(), now.keys.end(), std::int64_t{0});
    const std::int64_t page_count = all / now.page_tokens + static_cast<std::int64_t>(now.keys.size()) + 2;
    Pages pages(GetParam(), page_count, now.page_tokens, heads.kv, heads.dim);
    const auto slots = scattered_slots(all, now.page_tokens / 2, now.page_tokens, page_count, random);
    for (const std::int32_t slot : slots) pages.fill(slot, random);
    std::vector<std::vector<std::int32_t>> keys, own;
    auto next = slots.begin();
    for (const std::int64_t count : now.keys) {
      keys.emplace_back(next, next + count);
      next += count;
      std::vector<std::int32_t> last(static_cast<std::size_t>(std::min(now.asked, count)));
      std::iota(last.begin(), last.end(),
                static_cast<std::int32_t>(count) - static_cast<std::int32_t>(last.size()));
      own.push_back(std::move(last));
    }
    std::vector<AttentionSegment> segments;
    std::int64_t rows = 0;
    for (std::size_t s = 0; s < keys.size(); ++s) {
      segments.push_back({keys[s], own[s], rows});
      rows += static_cast<std::int64_t>(own[s].size());
    }
    // Segments need not be in the order of their rows.
    std::reverse(segments.begin(), segments.end());
    Lists lists(GetParam(), heads, now.capacity, now.counts);
    lists.of_segment = now.of_segment;
    lists.fill(random);
    const std::int64_t cols = heads.kv * heads.group * heads.dim;
    const TestMatrix q = TestMatrix::random(GetParam(), rows, cols, random, 3, 8);
    TestMatrix out(GetParam(), rows, cols, 8);
    const float scale = 1.0F / std::sqrt(static_cast<float>(heads.dim));
    Stream stream = test_stream(2);
    attend(stream, q, pages, segments, lists, scale, out);
    expect_reference(q, pages, segments, lists, scale, out);
    EXPECT_TRUE(out.gaps_untouched());
  }
};
INSTANTIATE_TEST_SUITE_P(Types, ListedAttentionTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(ListedAttentionTest, EveryHeadWidthAndGrouping) {
  std::uint64_t seed = 1;
  for (const std::int64_t dim : {20, 64, 128})
    for (const std::int64_t group : {1, 4, 7, 33})
      for (const std::int64_t asked : {1, 3, 10, 16})
        check({{2, group, dim}, 64, {70}, asked, 90, {90, 33}}, seed++);
}

// Around 64s of keys, and the tiles of the CPU; empty lists, and lengths that are none.
TEST_P(ListedAttentionTest, ListsOfEveryLength) {
  std::uint64_t seed = 100;
  for (const std::int32_t count : {-3, 0, 1, 2, 63, 64, 65, 511, 512, 513, 700, 1000})
    for (const std::int64_t asked : {1, 10}) check({{2, 4, 64}, 64, {65}, asked, 700, {count, 5}}, seed++);
  check({{1, 2, 20}, 16, {30}, 4, 700, {513}}, seed++);
  check({{1, 2, 64}, 64, {3}, 2, 0, {0}}, seed++);
}

// More 64s than a GPU has blocks, so that blocks have parts of several and several share one.
TEST_P(ListedAttentionTest, WorkIsDividedAnywhere) {
  check({{2, 4, 64}, 64, {900, 1, 64, 3000, 65}, 10, 2600, {0, 2600, 64, 1, 700, 0, 2600, 1300, 0, 0}}, 200);
  check({{3, 7, 128}, 64, {500, 4000, 10}, 1, 3000, {3000, 0, 1, 5, 3000, 63, 0, 0, 1000}}, 201);
}

// Lists of some of the segments, in an order of their own, and for none.
TEST_P(ListedAttentionTest, ASegmentSaysWhichListsItHasOrNone) {
  std::uint64_t seed = 250;
  for (const Heads heads : {Heads{2, 4, 64}, Heads{2, 7, 128}, Heads{2, 3, 20}})
    for (const std::int64_t asked : {1, 3, 30}) {
      check({heads, 64, {70, 1, 200, 65}, asked, 300, {300, 33, 64, 0}, {1, -1, 0, -1}}, seed++);
      check({heads, 64, {70, 1, 200}, asked, 300, {300, 33}, {-1, -1, 0}}, seed++);
      check({heads, 64, {70, 90}, asked, 300, {300, 33}, {0, 0}}, seed++);
      check({heads, 64, {70, 90}, asked, 300, {}, {-1, -1}}, seed++);
    }
}

// Tiles of more rows than a block has at once, and more of them than one launch takes.
TEST_P(ListedAttentionTest, ManyRows) {
  check({{2, 7, 64}, 64, {150}, 150, 200, {200, 77}}, 300);
  std::vector<std::int32_t> counts;
  for (std::int32_t i = 0; i < 66 * 8; ++i) counts.push_back(i % 5);
  check({{8, 16, 64}, 64, std::vector<std::int64_t>(66, 9), 8, 4, counts}, 301);
}

// The same keys, wherever they are: lists of all that a page list had.
TEST_P(ListedAttentionTest, EverythingInListsIsAttentionToAllPages) {
  constexpr Heads kHeads{2, 4, 64};
  constexpr std::int64_t kPast = 1000, kNow = 10;
  Random random(7);
  Pages pages(GetParam(), 18, 64, kHeads.kv, kHeads.dim, kHeads.dim);
  const auto slots = scattered_slots(kPast + kNow, 0, 64, 18, random);
  for (const std::int32_t slot : slots) pages.fill(slot, random);
  std::vector<std::int32_t> own(kNow), all_own(kNow);
  std::iota(own.begin(), own.end(), 0);
  std::iota(all_own.begin(), all_own.end(), static_cast<std::int32_t>(kPast));
  const std::span<const std::int32_t> everything = slots;
  Lists lists(GetParam(), kHeads, kPast, {kPast, kPast});
  // In an order of its own, as clusters have one.
  for (std::int64_t head = 0; head < kHeads.kv; ++head)
    for (std::int64_t i = 0; i < kPast; ++i)
      for (std::int64_t d = 0; d < kHeads.dim; ++d)
        for (const bool value : {false, true})
          lists.of(value).set(head * kPast + i * 7 % kPast, d,
                              pages.get(slots[static_cast<std::size_t>(i)], head, d, value));
  const TestMatrix q = TestMatrix::random(GetParam(), kNow, 512, random, 3);
  TestMatrix apart(GetParam(), kNow, 512), paged(GetParam(), kNow, 512);
  Stream stream = test_stream(2);
  const std::vector<AttentionSegment> of_now = {{everything.subspan(kPast), own, 0}},
                                      of_all = {{everything, all_own, 0}};
  attend(stream, q, pages, of_now, lists, 0.125F, apart);
  {
    const Mirror memory(stream, pages.bytes());
    OnDevice there(stream, paged);
    paged_attention(stream, OnDevice(stream, q), pages.layer_in(memory),
                    PagedPlan(stream, of_all, pages.layer(), 8), 0.125F, there);
    there.fetch();
  }
  for (std::int64_t i = 0; i < kNow; ++i)
    for (std::int64_t head = 0; head < 8; ++head) {
      const auto expected = wanted(q, pages, of_now[0], 0, lists, 0.125F, i, head);
      for (std::int64_t d = 0; d < kHeads.dim; ++d)
        ASSERT_NEAR(apart.get(i, head * 64 + d), paged.get(i, head * 64 + d),
                    2 * tolerance_of(GetParam()) * expected.magnitude[static_cast<std::size_t>(d)]);
    }
}

/// One sequence of 3 queries, 70 keys in pages, two KV heads with lists of 130.
struct Ugly {
  static constexpr Heads kHeads{2, 4, 64};
  Random random{9};
  Pages pages;
  std::vector<std::int32_t> keys, own{67, 68, 69};
  Lists lists;
  TestMatrix q, out;

  explicit Ugly(DType dtype)
      : pages(dtype, 4, 64, kHeads.kv, kHeads.dim),
        keys(scattered_slots(70, 5, 64, 4, random)),
        lists(dtype, kHeads, 140, {130, 130}),
        q(TestMatrix::random(dtype, 3, 512, random)),
        out(dtype, 3, 512) {
    for (const std::int32_t slot : keys) pages.fill(slot, random);
    lists.fill(random);
    // So that the first column says what a score's sign is.
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t head = 0; head < 8; ++head) q.set(i, head * 64, 1);
  }
  void run() {
    Stream stream = test_stream(2);
    attend(stream, q, pages, std::vector<AttentionSegment>{{keys, own, 0}}, lists, 0.125F, out);
  }
  /// Whether all of a query head's rows are no numbers, or all are numbers.
  bool is_nan(std::int64_t head) {
    int count = 0;
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t d = 0; d < 64; ++d) count += std::isnan(out.get(i, head * 64 + d)) ? 1 : 0;
    EXPECT_TRUE(count == 0 || count == 3 * 64) << "head " << head << ": " << count;
    return count > 0;
  }
};

TEST_P(ListedAttentionTest, WhatIsNoNumberStaysInItsHead) {
  Ugly now(GetParam());
  for (std::int64_t d = 0; d < 64; ++d) now.lists.of(false).set(140 + 100, d, std::nanf(""));
  now.run();
  for (std::int64_t head = 0; head < 8; ++head) EXPECT_EQ(now.is_nan(head), head >= 4) << head;

  // Of a value, the same column.
  Ugly value(GetParam());
  value.lists.of(true).set(3, 5, std::nanf(""));
  value.run();
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t head = 0; head < 8; ++head)
      for (std::int64_t d = 0; d < 64; ++d)
        ASSERT_EQ(std::isnan(value.out.get(i, head * 64 + d)), head < 4 && d == 5) << head << ", " << d;
}

TEST_P(ListedAttentionTest, KeysOfNoWeightLeaveNoTrace) {
  // All of a list: what is left is what the pages say.
  Ugly now(GetParam()), without(GetParam());
  for (std::int64_t i = 0; i < 130; ++i) now.lists.of(false).set(i, 0, -kEndless);
  now.run();
  Lists none(GetParam(), Ugly::kHeads, 140, {0, 130});
  none.of(false) = without.lists.of(false);
  none.of(true) = without.lists.of(true);
  without.lists = none;
  without.run();
  for (std::int64_t i = 0; i < 3; ++i)
    for (std::int64_t d = 0; d < 512; ++d)
      ASSERT_NEAR(now.out.get(i, d), without.out.get(i, d), tolerance_of(GetParam())) << d;

  // All that a head sees.
  Ugly nothing(GetParam());
  for (std::int64_t i = 0; i < 130; ++i) nothing.lists.of(false).set(i, 0, -kEndless);
  for (const std::int32_t slot : nothing.keys) nothing.pages.set(slot, 0, 0, false, -kEndless);
  nothing.run();
  for (std::int64_t head = 0; head < 8; ++head) EXPECT_EQ(nothing.is_nan(head), head < 4) << head;
}

TEST_P(ListedAttentionTest, LengthsAreReadWhenItRuns) {
  Ugly now(GetParam());
  now.run();
  const TestMatrix before = now.out;
  Lists shorter(GetParam(), Ugly::kHeads, 140, {1, 130});
  shorter.of(false) = now.lists.of(false);
  shorter.of(true) = now.lists.of(true);
  now.lists = shorter;
  now.run();
  const std::vector<AttentionSegment> segments = {{now.keys, now.own, 0}};
  expect_reference(now.q, now.pages, segments, now.lists, 0.125F, now.out);
  int changed = 0;
  for (std::int64_t d = 0; d < 256; ++d) changed += before.get(0, d) != now.out.get(0, d) ? 1 : 0;
  EXPECT_GT(changed, 200) << "the first head's queries see another list";
  for (std::int64_t d = 256; d < 512; ++d) EXPECT_NEAR(before.get(0, d), now.out.get(0, d), 1e-2);
}

TEST_P(ListedAttentionTest, WhatDoesNotFitIsRefused) {
  Ugly now(GetParam());
  Stream stream = Stream::cpu(1);
  const std::vector<AttentionSegment> segments = {{now.keys, now.own, 0}};
  const PagedPlan plan(stream, segments, now.pages.layer(), 8);
  const std::vector<std::int32_t> counts = {1, 1};
  const KvLists fine{now.lists.of(false).view().data, now.lists.of(true).view().data, counts.data(), 1, 140};
  const auto refused = [&](const KvLists& lists, float scale, Matrix out) {
    EXPECT_THROW(listed_attention(stream, now.q.view(), now.pages.layer(), plan, lists, scale, out),
                 std::invalid_argument);
  };
  KvLists wrong = fine;
  wrong.sequences = 2;
  refused(wrong, 1, now.out.view());
  wrong = fine;
  wrong.counts = nullptr;
  refused(wrong, 1, now.out.view());
  wrong = fine;
  wrong.values = nullptr;
  refused(wrong, 1, now.out.view());
  wrong = fine;
  wrong.capacity = -1;
  refused(wrong, 1, now.out.view());
  wrong = fine;
  wrong.sequences = -1;
  wrong.of_segment = counts.data();
  refused(wrong, 1, now.out.view());
  refused(fine, 0, now.out.view());
  refused(fine, std::nanf(""), now.out.view());
  refused(fine, 1, now.out.view().columns(0, 256));
  EXPECT_TRUE(now.out.row_untouched(0));
  EXPECT_NO_THROW(listed_attention(stream, now.q.view(), now.pages.layer(), plan, fine, 1, now.out.view()));
}

}  // namespace
}  // namespace vigil::kernels
