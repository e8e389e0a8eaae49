#include "kernels/wicsum/wicsum.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/hash_clusters/hash_clusters_reference.h"
#include "kernels/wicsum/wicsum_reference.h"
#include "tests/kernels/cluster_table.h"
#include "tests/kernels/resv_golden.h"

namespace vigil::kernels {
namespace {

/// Clusters on the host.
struct Clusters {
  std::int64_t kv_heads = 1, head_dim = 1, capacity = 0;
  std::vector<float> sums;
  std::vector<std::int32_t> counts;
  std::int32_t clusters = 0;

  ClusterKeys view() const { return {sums.data(), counts.data(), &clusters, capacity, kv_heads, head_dim}; }
};

Clusters random_clusters(std::int64_t clusters, std::int64_t kv_heads, std::int64_t head_dim, Random& random,
                         float scale = 1) {
  Clusters all{kv_heads, head_dim, clusters + 3, {}, {}, static_cast<std::int32_t>(clusters)};
  for (std::int64_t c = 0; c < all.capacity; ++c) {
    // Many of one token, some of many.
    const auto count = static_cast<std::int32_t>(1 + random.below(3) * random.below(3) * random.below(40));
    all.counts.push_back(count);
    for (std::int64_t d = 0; d < kv_heads * head_dim; ++d)
      all.sums.push_back(scale * static_cast<float>(count) * random.number());
  }
  return all;
}

struct Selected {
  std::vector<std::vector<std::int32_t>> clusters;
  std::vector<std::int32_t> tokens;
  bool operator==(const Selected&) const = default;
};

Selected select(const TestMatrix& q, const Clusters& keys, float scale, const WicsumChoice& choice) {
  Stream stream = test_stream(2);
  const auto heads = static_cast<std::size_t>(keys.kv_heads);
  const auto capacity = static_cast<std::size_t>(keys.capacity);
  Values<float> sums(stream, keys.sums);
  Values<std::int32_t> counts(stream, keys.counts), clusters(stream, {keys.clusters});
  Values<std::int32_t> lists(stream, std::vector<std::int32_t>(heads * capacity, -7));
  Values<std::int32_t> count(stream, std::vector<std::int32_t>(heads, -7)),
      tokens(stream, std::vector<std::int32_t>(heads, -7));
  select_clusters(stream, OnDevice(stream, q),
                  {sums.data(), counts.data(), clusters.data(), keys.capacity, keys.kv_heads, keys.head_dim},
                  scale, choice, {lists.data(), count.data(), tokens.data()});
  Selected selected;
  for (std::size_t head = 0; head < heads; ++head) {
    const auto begin = lists.fetch().begin() + static_cast<std::ptrdiff_t>(head * capacity);
    selected.clusters.emplace_back(begin, begin + count.fetch()[head]);
    selected.tokens.push_back(tokens.fetch()[head]);
  }
  return selected;
}

Selected wanted(const TestMatrix& q, const Clusters& keys, float scale, const WicsumChoice& choice) {
  Selected selected;
  for (std::int64_t head = 0; head < keys.kv_heads; ++head) {
    selected.clusters.push_back(reference::chosen_clusters(q.view(), keys.view(), head, scale, choice));
    std::int32_t tokens = 0;
    for (const std::int32_t c : selected.clusters.back()) tokens += keys.counts[static_cast<std::size_t>(c)];
    selected.tokens.push_back(tokens);
  }
  return selected;
}

std::vector<WicsumChoice> choices() {
  std::vector<WicsumChoice> all;
  for (const auto& [scores, rows] :
       {std::pair{WicsumScores::raw, WicsumRows::united}, std::pair{WicsumScores::exp, WicsumRows::united},
        std::pair{WicsumScores::exp, WicsumRows::pooled}}) {
    for (const double ratio : {0.0, 0.3, 0.97, 1.0}) all.push_back({scores, rows, ratio, 0});
    for (const std::int64_t tokens : {1, 40, 1'000'000}) all.push_back({scores, rows, 0.3, tokens});
  }
  return all;
}

std::string name_of(const WicsumChoice& choice) {
  return std::string(choice.scores == WicsumScores::raw ? "raw" : "exp") +
         (choice.rows == WicsumRows::united ? ", union" : ", pooled") + ", " + std::to_string(choice.ratio) +
         ", " + std::to_string(choice.tokens);
}

class WicsumTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, WicsumTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(WicsumTest, ChoosesWhatNumpyChooses) {
  int chosen = 0;
  for (const ResvGolden& now : ResvGoldenFile::read()) {
    const std::vector<float> planes = hyperplanes(now.planes, now.cols(), now.seed);
    TestMatrix q(GetParam(), now.asked, now.heads * now.head_dim, 2);
    for (std::int64_t i = 0; i < q.rows() * q.cols(); ++i)
      q.set(i / q.cols(), i % q.cols(), now.queries[static_cast<std::size_t>(i)]);
    for (const ResvGolden::Choice& choice : now.choices) {
      // Clusters as the reference has them, which hash_clusters_test compares with numpy's.
      reference::Clusters table(choice.compared == "mean" ? ClusterBits::mean : ClusterBits::first,
                                now.tokens, now.threshold);
      const ConstMatrix keys =
          dense(static_cast<const void*>(now.keys.data() +
                                         choice.layer * static_cast<std::size_t>(now.tokens * now.cols())),
                DType::f32, now.tokens, now.cols());
      for (std::int64_t i = 0; i < now.tokens; ++i) {
        std::vector<float> projections;
        for (std::int64_t p = 0; p < now.planes; ++p)
          projections.push_back(reference::projection(keys, i, planes.data() + p * now.cols()));
        table.join({keys.row<float>(i), keys.row<float>(i) + now.cols()}, projections);
      }
      Clusters clusters{now.kv_heads, now.head_dim, now.tokens,
                        {},           table.counts, static_cast<std::int32_t>(table.counts.size())};
      for (const auto& sum : table.sums) clusters.sums.insert(clusters.sums.end(), sum.begin(), sum.end());
      const WicsumChoice how{choice.scores == "raw" ? WicsumScores::raw : WicsumScores::exp,
                             choice.rows == "union" ? WicsumRows::united : WicsumRows::pooled, choice.ratio,
                             choice.tokens};
      const Selected selected = select(q, clusters, now.scale, how);
      EXPECT_EQ(selected.clusters, choice.chosen)
          << now.name << ": " << choice.compared << ", layer " << choice.layer << ", " << name_of(how);
      EXPECT_EQ(selected, wanted(q, clusters, now.scale, how)) << now.name << ": " << name_of(how);
      for (const auto& list : selected.clusters) chosen += list.empty() ? 0 : 1;
    }
  }
  EXPECT_GT(chosen, 500);
}

struct Shape {
  std::int64_t clusters, asked, kv_heads, group, head_dim;
};

TEST_P(WicsumTest, ChoosesWhatTheReferenceChooses) {
  std::uint64_t seed = 1;
  for (const Shape& now : {Shape{1, 1, 1, 1, 1}, Shape{31, 2, 3, 1, 6}, Shape{33, 17, 2, 4, 33},
                           Shape{513, 3, 1, 7, 20}, Shape{1300, 5, 2, 2, 40}, Shape{5000, 1, 2, 1, 8}})
    for (const float spread : {0.01F, 1.0F, 40.0F}) {
      Random random(seed++);
      const Clusters keys = random_clusters(now.clusters, now.kv_heads, now.head_dim, random);
      const TestMatrix q = TestMatrix::random(GetParam(), now.asked, now.kv_heads * now.group * now.head_dim,
                                              random, spread, 3);
      for (const WicsumChoice& choice : choices()) {
        const Selected selected = select(q, keys, 0.5F, choice);
        ASSERT_EQ(selected, wanted(q, keys, 0.5F, choice))
            << now.clusters << " clusters, spread " << spread << ", " << name_of(choice);
        const bool everything = choice.tokens == 0 && choice.ratio == 1;
        ASSERT_TRUE(!everything || selected.clusters[0].size() == static_cast<std::size_t>(now.clusters));
      }
    }
}

// Two query tokens of one head over clusters of one element: a score is what the lists below say, in halves.
Selected of_scores(const std::vector<float>& scores, const std::vector<std::int32_t>& counts,
                   const WicsumChoice& choice) {
  Clusters keys{1,  1,      static_cast<std::int64_t>(scores.size()),
                {}, counts, static_cast<std::int32_t>(scores.size())};
  for (std::size_t c = 0; c < scores.size(); ++c)
    keys.sums.push_back(2 * scores[c] * static_cast<float>(counts[c]));
  TestMatrix q(DType::f32, 1, 1);
  q.set(0, 0, 1);
  const Selected selected = select(q, keys, 0.5F, choice);
  EXPECT_EQ(selected, wanted(q, keys, 0.5F, choice));
  return selected;
}

std::vector<std::int32_t> raw(const std::vector<float>& scores, const std::vector<std::int32_t>& counts,
                              double ratio) {
  return of_scores(scores, counts, {WicsumScores::raw, WicsumRows::united, ratio, 0}).clusters[0];
}

std::vector<std::int32_t> mass(const std::vector<float>& scores, const std::vector<std::int32_t>& counts,
                               double ratio, std::int64_t tokens = 0) {
  return of_scores(scores, counts, {WicsumScores::exp, WicsumRows::united, ratio, tokens}).clusters[0];
}

using List = std::vector<std::int32_t>;

// What the words of section IV.C say, worked out by hand.
TEST(WicsumWordsTest, RawScores) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  // Sum 10, half of it 5: 4 is not more, 4 + 3 is.
  EXPECT_EQ(raw({1, 4, 3, 2}, {1, 1, 1, 1}, 0.5), (List{1, 2}));
  // Counts weigh, and do not rank: 4 + 3 * 3 of 16.
  EXPECT_EQ(raw({1, 4, 3, 2}, {1, 1, 3, 1}, 0.5), (List{1, 2}));
  EXPECT_EQ(raw({1, 4, 3, 2}, {1, 1, 3, 1}, 0.2), (List{1}));
  // Exactly the threshold is not above it.
  EXPECT_EQ(raw({4, 2, 2}, {1, 1, 1}, 0.5), (List{0, 1}));
  // Equal scores: the older cluster.
  EXPECT_EQ(raw({1, 3, 3, 3}, {1, 1, 1, 1}, 0.5), (List{1, 2}));
  EXPECT_EQ(raw({1, 3, 3, 3}, {1, 1, 1, 1}, 0), (List{1}));
  // All negative: a sum of -10 has a threshold of -5, and -1 is more.
  EXPECT_EQ(raw({-2, -4, -3, -1}, {1, 1, 1, 1}, 0.5), (List{3}));
  EXPECT_EQ(raw({-1, -1, -1}, {1, 1, 1}, 0.5), (List{0}));
  // But not where the first alone is below: -8 of -9, and from there sums only fall.
  EXPECT_EQ(raw({-1, -1}, {8, 1}, 0.5), (List{0, 1}));
  // A sum of 0 has a threshold of 0, which the first positive one exceeds.
  EXPECT_EQ(raw({2, -3, 1}, {1, 1, 1}, 0.3), (List{0}));
  EXPECT_EQ(raw({0, 0, 0}, {1, 5, 1}, 0.3), (List{0, 1, 2}));
  // A sum below 0 beside a positive score: that is enough.
  EXPECT_EQ(raw({2, -30, 1}, {1, 1, 1}, 0.9), (List{0}));
  // No sum of positive scores exceeds what is nearly all of them: 10 - 1 times 1 - 2^-20, with 6 + 4.
  EXPECT_EQ(raw({6, -1, 4}, {1, 1, 1}, 1 - 0x1p-20), (List{0, 2}));
  EXPECT_EQ(raw({6, 4}, {1, 1}, 1 - 0x1p-20), (List{0, 1}));
  // All of them, though 10 is more than the sum of 9.
  EXPECT_EQ(raw({6, -1, 4}, {1, 1, 1}, 1), (List{0, 1, 2}));
}

TEST(WicsumWordsTest, MassOfAttention) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  // Four equal ones: 2 of 4 are not more than half, 3 are.
  EXPECT_EQ(mass({-7, -7, -7, -7}, {1, 1, 1, 1}, 0.5), (List{0, 1, 2}));
  // exp(-1) * 2 = 0.7358 beside 1: 0.576 of the mass with the first.
  EXPECT_EQ(mass({4, 5}, {2, 1}, 0.57), (List{1}));
  EXPECT_EQ(mass({4, 5}, {2, 1}, 0.58), (List{0, 1}));
  EXPECT_EQ(mass({4, 5}, {2, 1}, 0), (List{1}));
  // What has no weight any more is chosen by a ratio of 1 alone.
  EXPECT_EQ(mass({40, 0}, {1, 1000}, 1 - 0x1p-20), (List{0}));
  EXPECT_EQ(mass({40, 0}, {1, 1000}, 1), (List{0, 1}));
}

TEST(WicsumWordsTest, BudgetsEndWhereTokensAreReached) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  EXPECT_EQ(mass({1, 3, 2}, {5, 2, 4}, 0, 1), (List{1}));
  EXPECT_EQ(mass({1, 3, 2}, {5, 2, 4}, 0, 2), (List{1}));
  EXPECT_EQ(mass({1, 3, 2}, {5, 2, 4}, 0, 3), (List{1, 2}));
  EXPECT_EQ(mass({1, 3, 2}, {5, 2, 4}, 0, 11), (List{0, 1, 2}));
  EXPECT_EQ(mass({1, 3, 2}, {5, 2, 4}, 0, 12), (List{0, 1, 2}));
}

// Rows that disagree: the union has what each wants, the pool what most of the attention of both is on.
TEST(WicsumWordsTest, UnionAndPool) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Clusters keys{1, 2, 3, {8, 0, 0, 8, 7, 7}, {1, 1, 1}, 3};
  TestMatrix q(DType::f32, 2, 2);
  q.set(0, 0, 1);
  q.set(0, 1, 0);
  q.set(1, 0, 0);
  q.set(1, 1, 1);
  const auto chosen = [&](WicsumRows rows, double ratio) {
    const WicsumChoice choice{WicsumScores::exp, rows, ratio, 0};
    const Selected selected = select(q, keys, 1, choice);
    EXPECT_EQ(selected, wanted(q, keys, 1, choice));
    return selected.clusters[0];
  };
  // Each row: 0.731 and 0.269 of its own cluster and of the third; pooled: 0.366, 0.366, 0.269.
  EXPECT_EQ(chosen(WicsumRows::united, 0.7), (List{0, 1}));
  EXPECT_EQ(chosen(WicsumRows::pooled, 0.7), (List{0, 1}));
  EXPECT_EQ(chosen(WicsumRows::pooled, 0.3), (List{0}));
  EXPECT_EQ(chosen(WicsumRows::united, 0.3), (List{0, 1}));
  keys.sums = {8, 0, 0, 8, 7.9F, 7.9F};
  // The third has 0.475 of both.
  EXPECT_EQ(chosen(WicsumRows::pooled, 0.4), (List{2}));
  EXPECT_EQ(chosen(WicsumRows::united, 0.4), (List{0, 1}));
}

TEST(WicsumWordsTest, ScoresBeyondAllBoundsAreTheHighestAndTheLowest) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  constexpr float kFar = std::numeric_limits<float>::infinity();
  EXPECT_EQ(mass({1, kFar, 40000, std::nanf(""), -kFar}, {1, 1, 1, 1, 1}, 0.6), (List{1, 2}));
  EXPECT_EQ(raw({1, kFar, std::nanf("")}, {1, 1, 1}, 0.5), (List{1}));
}

TEST(WicsumWordsTest, NobodyAsksOrNothingIsThere) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(3);
  Clusters keys = random_clusters(20, 2, 8, random);
  for (const WicsumChoice& choice : choices()) {
    const Selected none{{{}, {}}, {0, 0}};
    EXPECT_EQ(select(TestMatrix(DType::f32, 0, 32), keys, 1, choice), none) << name_of(choice);
    Clusters empty = keys;
    empty.clusters = 0;
    EXPECT_EQ(select(TestMatrix::random(DType::f32, 3, 32, random), empty, 1, choice), none);
  }
}

// Whole numbers, whatever made them.
TEST(WicsumFixedPointTest, NumbersAreThoseOfTheirFormulas) {
  EXPECT_EQ(wicsum::fixed_score(1.5F), 98304);
  EXPECT_EQ(wicsum::fixed_score(-0x1p-17F), 0);
  EXPECT_EQ(wicsum::fixed_score(0x1.8p-16F), 2);
  EXPECT_EQ(wicsum::fixed_score(-0x1.8p-16F), -2);
  EXPECT_EQ(wicsum::fixed_score(32767.998F), 2147483520);
  EXPECT_EQ(wicsum::fixed_score(32768), std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(wicsum::fixed_score(-1e30F), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wicsum::fixed_score(std::nanf("")), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(wicsum::fixed_exp(0), std::int64_t{1} << 30U);
  std::int64_t before = wicsum::fixed_exp(0);
  for (std::int64_t below = 1; below < (std::int64_t{25} << 16U); below += 1 + below / 999) {
    const std::int64_t now = wicsum::fixed_exp(below);
    ASSERT_NEAR(static_cast<double>(now), std::exp(-static_cast<double>(below) / 65536) * 0x1p30, 1.6)
        << below;
    ASSERT_LE(now, before);
    before = now;
  }
  EXPECT_EQ(before, 0);
  EXPECT_EQ(wicsum::fixed_exp(std::int64_t{1} << 32U), 0);
  EXPECT_EQ(wicsum::fixed_ratio(0.3), 314573);
  EXPECT_EQ(wicsum::part_of(10, 1 << 19), 5);
  EXPECT_EQ(wicsum::part_of(-5, 1 << 19), -3);
  EXPECT_EQ(wicsum::part_of((std::int64_t{1} << 61U) + 1, 1 << 20), (std::int64_t{1} << 61U) + 1);
}

TEST(WicsumWordsTest, RefusesWhatDoesNotFit) {
  Stream stream = Stream::cpu(1);
  Random random(4);
  const Clusters keys = random_clusters(5, 2, 8, random);
  const TestMatrix q(DType::f32, 1, 32);
  const auto refused = [&](ConstMatrix asked, const ClusterKeys& table, const WicsumChoice& choice) {
    EXPECT_THROW(select_clusters(stream, asked, table, 1, choice, {}), std::invalid_argument);
  };
  const WicsumChoice good;
  for (const double ratio : {-0.1, 1.1, std::nan("")})
    refused(q.view(), keys.view(), {WicsumScores::raw, WicsumRows::united, ratio, 0});
  refused(q.view(), keys.view(), {WicsumScores::raw, WicsumRows::pooled, 0.3, 0});
  refused(q.view(), keys.view(), {WicsumScores::raw, WicsumRows::united, 0.3, -1});
  refused(TestMatrix(DType::f32, 1, 24).view(), keys.view(), good);
  refused(dense(static_cast<const void*>(nullptr), DType::u8, 1, 32), keys.view(), good);
  ClusterKeys bad = keys.view();
  bad.capacity = 0;
  refused(q.view(), bad, good);
}

}  // namespace
}  // namespace vigil::kernels
