#include "engine/kv/retrieval/selection.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

namespace vigil::retrieval {
namespace {

using Ranges = std::vector<TokenRange>;
using List = std::vector<std::int32_t>;

TEST(SelectionTest, RangesOfTheStreamDoNotTouch) {
  const List assigned{0, 0, 1, 2, 1, 1, 0, 3};
  EXPECT_EQ(ranges_of(assigned, List{}), (Ranges{}));
  EXPECT_EQ(ranges_of(assigned, List{0}), (Ranges{{0, 2}, {6, 1}}));
  EXPECT_EQ(ranges_of(assigned, List{1, 2}), (Ranges{{2, 4}}));
  EXPECT_EQ(ranges_of(assigned, List{0, 1, 2, 3}), (Ranges{{0, 8}}));
  EXPECT_EQ(ranges_of(List{}, List{0}), (Ranges{}));
}

TEST(SelectionTest, TokensOfAClusterLieSideBySide) {
  const ClusterOrder order(List{0, 0, 1, 2, 1, 1, 0, 3});
  EXPECT_EQ(List(order.tokens().begin(), order.tokens().end()), (List{0, 1, 6, 2, 4, 5, 3, 7}));
  EXPECT_EQ(order.clusters(), 4);
  EXPECT_EQ(order.places(1), (TokenRange{3, 3}));
  EXPECT_EQ(order.places(List{0, 2, 3}), (Ranges{{0, 3}, {6, 2}}));
  EXPECT_EQ(order.places(List{}), (Ranges{}));
  EXPECT_THROW(order.places(4), std::out_of_range);
  EXPECT_THROW(order.places(List{-1}), std::out_of_range);
}

TEST(SelectionTest, NothingHasAnOrderToo) {
  const ClusterOrder order(List{});
  EXPECT_EQ(order.clusters(), 0);
  EXPECT_TRUE(order.tokens().empty());
  EXPECT_THROW(ClusterOrder(List{0, -1}), std::invalid_argument);
}

// Both ways name the same tokens, each once.
TEST(SelectionTest, BothWaysNameTheSameTokens) {
  List assigned;
  for (std::uint32_t i = 0, state = 1; i < 500; ++i) {
    state = state * 1664525U + 1013904223U;
    assigned.push_back(static_cast<std::int32_t>(state >> 27U));
  }
  const ClusterOrder order(assigned);
  const List chosen{1, 2, 7, 30};
  List by_stream, by_cluster;
  for (const TokenRange& range : ranges_of(assigned, chosen))
    for (std::int64_t i = 0; i < range.count; ++i)
      by_stream.push_back(static_cast<std::int32_t>(range.first + i));
  for (const TokenRange& range : order.places(chosen))
    for (std::int64_t i = 0; i < range.count; ++i)
      by_cluster.push_back(order.tokens()[static_cast<std::size_t>(range.first + i)]);
  std::sort(by_cluster.begin(), by_cluster.end());
  EXPECT_EQ(by_stream, by_cluster);
  EXPECT_GT(by_stream.size(), 20U);
  EXPECT_EQ(order.places(chosen).size(), 3U);
}

}  // namespace
}  // namespace vigil::retrieval
