#include "engine/kv/retrieval/retriever.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/kernels/on_device.h"

namespace vigil::retrieval {
namespace {

using kernels::DType;
using kernels::OnDevice;
using kernels::Random;
using kernels::Stream;
using kernels::test_stream;
using kernels::TestMatrix;

constexpr int kLayers = 2, kKvHeads = 2, kDim = 8, kHeads = 6;
constexpr std::int64_t kCols = kKvHeads * kDim;
const KeyShape kShape{kLayers, kKvHeads, kDim};

/// Patches of some keys, and what a question asks of them.
struct Stage {
  Random random{7};
  std::vector<TestMatrix> patches;
  TestMatrix q = TestMatrix::random(DType::bf16, 3, kHeads* kDim, random, 3, 4);

  Stage() {
    for (const std::int64_t tokens : {7, 1, 20, 12, 5})
      patches.push_back(TestMatrix::random(DType::bf16, kLayers * tokens, kCols, random, 2));
  }
  std::int64_t tokens() const {
    std::int64_t sum = 0;
    for (const TestMatrix& patch : patches) sum += patch.rows() / kLayers;
    return sum;
  }
  /// A layer's keys, [tokens][cols].
  std::vector<std::vector<double>> keys(int layer) const {
    std::vector<std::vector<double>> all;
    for (const TestMatrix& patch : patches)
      for (std::int64_t i = 0; i < patch.rows() / kLayers; ++i) {
        all.emplace_back();
        for (std::int64_t d = 0; d < kCols; ++d)
          all.back().push_back(double{patch.get(layer * patch.rows() / kLayers + i, d)});
      }
    return all;
  }
  void tell(Stream& stream, Retriever& to) const {
    for (const TestMatrix& patch : patches) to.append(stream, {OnDevice(stream, patch)});
  }
};

std::set<std::int64_t> tokens_of(const std::vector<TokenRange>& ranges) {
  std::set<std::int64_t> tokens;
  std::int64_t end = -1;
  for (const TokenRange& range : ranges) {
    EXPECT_GT(range.first, end) << "ranges touch";
    EXPECT_GT(range.count, 0);
    end = range.first + range.count;
    for (std::int64_t i = range.first; i < end; ++i) tokens.insert(i);
  }
  return tokens;
}

TEST(RetrieverTest, EqualTokensForAllControls) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  for (const char* name : {"recent", "random", "topk"}) {
    const RetrieverPtr retriever = make_retriever(name, stream, kShape);
    EXPECT_EQ(retriever->choose(stream, {1, q, 0.3F, 5}), ChosenTokens(kKvHeads)) << name << " of nothing";
    stage.tell(stream, *retriever);
    for (const std::int64_t tokens : {0, 1, 17, 45, 100}) {
      const ChosenTokens chosen = retriever->choose(stream, {1, q, 0.3F, tokens});
      ASSERT_EQ(chosen.size(), 2U);
      for (const auto& ranges : chosen)
        EXPECT_EQ(tokens_of(ranges).size(), static_cast<std::size_t>(std::min<std::int64_t>(tokens, 45)))
            << name;
    }
  }
}

TEST(RetrieverTest, AllAndRecent) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  const RetrieverPtr all = make_retriever("all", stream, kShape),
                     recent = make_retriever("recent", stream, kShape);
  stage.tell(stream, *all);
  stage.tell(stream, *recent);
  EXPECT_EQ(all->choose(stream, {0, q, 1, 0}), (ChosenTokens{{{0, 45}}, {{0, 45}}}));
  EXPECT_EQ(recent->choose(stream, {0, q, 1, 10}), (ChosenTokens{{{35, 10}}, {{35, 10}}}));
  EXPECT_EQ(all->bytes() + recent->bytes(), 0);
}

TEST(RetrieverTest, AnyTokensAreTheSameOnesAgainAndSpread) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  const RetrieverPtr one = make_retriever("random", stream, kShape),
                     other = make_retriever("random", stream, kShape);
  std::vector<int> often(45 + 400);
  std::set<std::set<std::int64_t>> different;
  stage.tell(stream, *one);
  stage.tell(stream, *other);
  for (int more = 0; more < 400; ++more) {
    for (int layer = 0; layer < kLayers; ++layer) {
      const ChosenTokens chosen = one->choose(stream, {layer, q, 1, 20});
      EXPECT_EQ(chosen, other->choose(stream, {layer, q, 1, 20}));
      for (const auto& ranges : chosen) {
        different.insert(tokens_of(ranges));
        for (const std::int64_t token : tokens_of(ranges)) ++often[static_cast<std::size_t>(token)];
      }
    }
    const TestMatrix token = TestMatrix::random(DType::bf16, kLayers, kCols, stage.random);
    one->append(stream, {OnDevice(stream, token)});
    other->append(stream, {OnDevice(stream, token)});
  }
  EXPECT_EQ(different.size(), 400U * kLayers * kKvHeads);
  // The oldest 45 are drawn 1,600 times, with chances from 20 of 45 to 20 of 444.
  double chance = 0;
  for (int more = 0; more < 400; ++more) chance += 4 * 20.0 / (45 + more);
  for (int token = 0; token < 45; ++token)
    EXPECT_NEAR(often[static_cast<std::size_t>(token)], chance, 5 * std::sqrt(chance)) << token;
}

// The shares of the attention, added over all rows of a KV head, in double precision.
TEST(RetrieverTest, TopKHasMostOfTheAttention) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  const RetrieverPtr topk = make_retriever("topk", stream, kShape);
  stage.tell(stream, *topk);
  EXPECT_GT(topk->bytes(), kLayers * 45 * kCols * 4);
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto keys = stage.keys(layer);
    for (const std::int64_t tokens : {1, 9, 30}) {
      const ChosenTokens chosen = topk->choose(stream, {layer, q, 0.3F, tokens});
      for (int head = 0; head < kKvHeads; ++head) {
        std::vector<double> shares(keys.size());
        for (std::int64_t i = 0; i < stage.q.rows(); ++i)
          for (int h = head * 3; h < head * 3 + 3; ++h) {
            std::vector<double> row;
            for (const auto& key : keys) {
              double score = 0;
              for (int d = 0; d < kDim; ++d)
                score +=
                    double{stage.q.get(i, h * kDim + d)} * key[static_cast<std::size_t>(head * kDim + d)];
              row.push_back(std::exp(0.3 * score));
            }
            const double sum = std::accumulate(row.begin(), row.end(), 0.0);
            for (std::size_t token = 0; token < row.size(); ++token) shares[token] += row[token] / sum;
          }
        std::vector<std::int64_t> order(keys.size());
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](auto a, auto b) {
          return shares[static_cast<std::size_t>(a)] > shares[static_cast<std::size_t>(b)];
        });
        EXPECT_EQ(tokens_of(chosen[static_cast<std::size_t>(head)]),
                  std::set<std::int64_t>(order.begin(), order.begin() + tokens))
            << layer << ", " << head << ", " << tokens;
      }
    }
  }
}

// Whole patches, by the mean query's product with their mean key over all heads, until there are enough.
TEST(RetrieverTest, RekvTakesWholePatches) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  const RetrieverPtr rekv = make_retriever("rekv", stream, kShape);
  stage.tell(stream, *rekv);
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto keys = stage.keys(layer);
    std::vector<std::pair<double, std::size_t>> scores;
    std::vector<std::int64_t> begins{0};
    for (std::size_t patch = 0; patch < stage.patches.size(); ++patch) {
      begins.push_back(begins.back() + stage.patches[patch].rows() / kLayers);
      double score = 0;
      for (std::int64_t i = 0; i < stage.q.rows(); ++i)
        for (int h = 0; h < kHeads; ++h)
          for (int d = 0; d < kDim; ++d)
            for (std::int64_t token = begins[patch]; token < begins[patch + 1]; ++token)
              score += double{stage.q.get(i, h * kDim + d)} *
                       keys[static_cast<std::size_t>(token)][static_cast<std::size_t>(h / 3 * kDim + d)] /
                       static_cast<double>(begins[patch + 1] - begins[patch]);
      scores.emplace_back(-score, patch);
    }
    std::sort(scores.begin(), scores.end());
    for (const std::int64_t tokens : {1, 8, 21, 45, 60}) {
      std::set<std::int64_t> wanted;
      for (const auto& [score, patch] : scores) {
        if (static_cast<std::int64_t>(wanted.size()) >= tokens) break;
        for (std::int64_t token = begins[patch]; token < begins[patch + 1]; ++token) wanted.insert(token);
      }
      const ChosenTokens chosen = rekv->choose(stream, {layer, q, 0.3F, tokens});
      ASSERT_EQ(chosen.size(), 2U);
      EXPECT_EQ(tokens_of(chosen[0]), wanted) << layer << ", " << tokens;
      EXPECT_EQ(chosen[1], chosen[0]);
    }
    EXPECT_EQ(rekv->choose(stream, {layer, q, 0.3F, 0}), ChosenTokens(2));
  }
}

// What is fetched of a stream is every token of the clusters that its table chooses.
TEST(RetrieverTest, ResvFetchesTheTokensOfItsClusters) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  const Stage stage;
  Stream stream = test_stream(2);
  const OnDevice q(stream, stage.q);
  ResvSettings settings = resv_named("resv-mass");
  settings.th_hp = 12;
  const RetrieverPtr resv = make_resv(stream, kShape, settings);
  HcTable table(stream, kShape, settings);
  stage.tell(stream, *resv);
  for (const TestMatrix& patch : stage.patches) table.append(stream, {OnDevice(stream, patch)});
  std::size_t most = 0;
  for (int layer = 0; layer < kLayers; ++layer) {
    const ChosenTokens chosen = resv->choose(stream, {layer, q, 0.3F, 0});
    const auto lists = table.store().choose(stream, table.store().keys(layer), q, 0.3F, table.choice());
    const auto assigned = table.store().assigned(stream, layer);
    for (std::size_t head = 0; head < 2; ++head) {
      std::set<std::int64_t> wanted;
      for (std::size_t token = 0; token < assigned.size(); ++token)
        if (std::find(lists[head].begin(), lists[head].end(), assigned[token]) != lists[head].end())
          wanted.insert(static_cast<std::int64_t>(token));
      EXPECT_EQ(tokens_of(chosen[head]), wanted);
      EXPECT_LT(wanted.size(), 45U);
      most = std::max(most, wanted.size() - lists[head].size());
    }
  }
  EXPECT_GT(most, 0U) << "no cluster of several tokens was chosen";
  EXPECT_EQ(resv->bytes(), table.store().bytes());
}

TEST(RetrieverTest, RefusesWhatDoesNotFit) {
  Stream stream = Stream::cpu(1);
  EXPECT_THROW(make_retriever("resv2", stream, kShape), std::invalid_argument);
  EXPECT_THROW(make_retriever("all", stream, {1, 0, 8}), std::invalid_argument);
  const TestMatrix odd(DType::bf16, 3, kCols), narrow(DType::bf16, 2, kCols - 1);
  const TestMatrix q(DType::bf16, 1, kHeads * kDim);
  const auto each = [&](std::string_view name) {
    const RetrieverPtr retriever = make_retriever(name, stream, kShape);
    EXPECT_THROW(retriever->append(stream, {odd.view()}), std::invalid_argument) << name;
    EXPECT_THROW(retriever->append(stream, {narrow.view()}), std::invalid_argument) << name;
    EXPECT_THROW(retriever->choose(stream, {2, q.view(), 1, 1}), std::invalid_argument) << name;
    EXPECT_THROW(retriever->choose(stream, {-1, q.view(), 1, 1}), std::invalid_argument) << name;
    EXPECT_THROW(retriever->choose(stream, {0, narrow.view(), 1, 1}), std::invalid_argument) << name;
    EXPECT_THROW(retriever->choose(stream, {0, q.view(), 1, -1}), std::invalid_argument) << name;
  };
  for (const std::string_view name : kResvForms) each(name);
  for (const std::string_view name : kControls) each(name);
}

}  // namespace
}  // namespace vigil::retrieval
