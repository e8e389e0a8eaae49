#include "cluster/placement/rendezvous.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace vigil::cluster {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// With weights in units, as fractions of a million.
Rendezvous rendezvous(const std::vector<std::pair<std::string, double>>& nodes) {
  std::vector<Rendezvous::Node> list;
  list.reserve(nodes.size());
  for (const auto& [name, weight] : nodes)
    list.push_back({name, static_cast<std::int64_t>(std::llround(weight * 1e6))});
  return Rendezvous(list);
}

std::vector<std::pair<std::string, double>> equal_nodes(int count) {
  std::vector<std::pair<std::string, double>> nodes;
  for (int i = 0; i < count; ++i) nodes.emplace_back("node-" + std::to_string(i), 1);
  return nodes;
}

std::vector<std::string> names(const std::string& before, int count, const std::string& after = "") {
  std::vector<std::string> result;
  for (int i = 0; i < count; ++i) result.push_back(before + std::to_string(i) + after);
  return result;
}

/// Of counts against what is expected of each.
double chi_square(const std::vector<int>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double apart = counts[i] - expected[i];
    sum += apart * apart / expected[i];
  }
  return sum;
}

/// How many deviations a chi-square of so many degrees of freedom lies from its mean (Wilson and Hilferty).
double deviations(double chi, double freedom) {
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(chi / freedom) - (1 - variance)) / std::sqrt(variance);
}

/// What a program of another language makes of the same definitions (FNV-1a, splitmix64, logarithms of 60
/// digits): two builds that disagree about these would move cameras from one to the other.
TEST(Rendezvous, IsWhatItIsOnEveryMachine) {
  EXPECT_EQ(Rendezvous::hash_of("gate-1"), 0x6c4939241f8d198cU);
  EXPECT_EQ(Rendezvous::seed_of("gate-1"), 0x72a3b52575089aebU);
  EXPECT_EQ(rendezvous({{"gate-1", 1}}).draw(Rendezvous::hash_of("camera-1"), 0), 0x7a8392593f7040f7U);

  const Rendezvous equal =
      rendezvous({{"gate-1", 1}, {"gate-2", 1}, {"gate-3", 1}, {"gate-4", 1}, {"gate-5", 1}});
  const Rendezvous weighted =
      rendezvous({{"gate-1", 1}, {"gate-2", 2}, {"gate-3", 0.5}, {"gate-4", 1}, {"gate-5", 4}});
  const auto order = [](const Rendezvous& of, const char* item) {
    return of.order(Rendezvous::hash_of(item), 9);
  };
  EXPECT_THAT(order(equal, "yard"), ElementsAre(4, 3, 0, 2, 1));
  EXPECT_THAT(order(equal, "door"), ElementsAre(1, 4, 3, 2, 0));
  EXPECT_THAT(order(equal, "camera-17"), ElementsAre(2, 1, 0, 3, 4));
  EXPECT_THAT(order(equal, ""), ElementsAre(1, 2, 0, 4, 3));
  EXPECT_THAT(order(weighted, "yard"), ElementsAre(4, 3, 0, 1, 2));
  EXPECT_THAT(order(weighted, "door"), ElementsAre(4, 1, 3, 0, 2));
  EXPECT_THAT(order(weighted, "camera-17"), ElementsAre(2, 1, 0, 4, 3));
  EXPECT_THAT(order(weighted, " Straße"), ElementsAre(1, 4, 0, 2, 3));

  std::vector<std::pair<std::string, double>> many;
  for (int i = 0; i < 12; ++i) many.emplace_back("n" + std::to_string(i), 1 + i * 0.25);
  const Rendezvous of_many = rendezvous(many);
  EXPECT_THAT(of_many.order(Rendezvous::hash_of("yard"), 4), ElementsAre(11, 10, 3, 7));
  EXPECT_THAT(of_many.order(Rendezvous::hash_of("door"), 4), ElementsAre(7, 1, 9, 5));
  EXPECT_THAT(of_many.order(Rendezvous::hash_of("camera-17"), 4), ElementsAre(9, 2, 0, 6));
  EXPECT_THAT(of_many.order(Rendezvous::hash_of("north/gate/3"), 4), ElementsAre(4, 6, 7, 1));
}

TEST(Rendezvous, ItsLogarithmIsOne) {
  EXPECT_EQ(wait_of(std::uint64_t{1} << 63U), std::uint64_t{1} << 48U) << "one half";
  EXPECT_EQ(wait_of(~std::uint64_t{0}), std::uint64_t{64} << 48U);
  EXPECT_GT(wait_of(0), 0U);
  EXPECT_NEAR(static_cast<double>(wait_of(0xdeadbeefdeadbeefU)), 827994388265899.0, 64);
  EXPECT_NEAR(static_cast<double>(wait_of(0x40000000000000U)), 396758754605.0, 64);
  EXPECT_NEAR(static_cast<double>(wait_of(0x100000000U)), 94548.0, 64);
  std::uint64_t value = 1;
  for (int i = 0; i < 20'000; ++i) {
    value = mixed(value);
    const std::uint64_t draw = value >> (i % 40);
    ASSERT_GE(wait_of(draw + 1), wait_of(draw)) << draw;
    ASSERT_GE(wait_of(draw + (draw >> 40U)), wait_of(draw)) << draw;
  }
}

TEST(Rendezvous, HasNothingWithoutNodes) {
  const Rendezvous none = rendezvous({});
  EXPECT_EQ(none.first(1), std::nullopt);
  EXPECT_THAT(none.order(1, 3), IsEmpty());
  const Rendezvous one = rendezvous({{"a", 1}});
  EXPECT_EQ(one.first(1), 0U);
  EXPECT_EQ(one.first_of(1, [](std::size_t) { return false; }), std::nullopt);
  EXPECT_EQ(one.before(1, 0), 0U);
}

TEST(Rendezvous, ItsFirstChoicesAreThoseOfItsOrder) {
  for (const int weights : {1, 3, 40}) {
    std::vector<std::pair<std::string, double>> nodes;
    for (int i = 0; i < 40; ++i) nodes.emplace_back("node-" + std::to_string(i), 1 + i % weights * 0.37);
    const Rendezvous all = rendezvous(nodes);
    for (const std::string& name : names("camera-", 300)) {
      const std::uint64_t item = Rendezvous::hash_of(name);
      const std::vector<std::size_t> order = all.order(item, 99);
      ASSERT_EQ(order.size(), 40U);
      std::vector<bool> passed(40);
      for (std::size_t rank = 0; rank < order.size(); ++rank) {
        ASSERT_EQ(all.before(item, order[rank]), rank);
        if (rank > 0) {
          ASSERT_TRUE(all.prefers(item, order[rank - 1], order[rank]));
          ASSERT_FALSE(all.prefers(item, order[rank], order[rank - 1]));
        }
        ASSERT_EQ(all.first_of(item, [&](std::size_t node) { return !passed[node]; }), order[rank]);
        passed[order[rank]] = true;
      }
    }
  }
}

TEST(Rendezvous, ANodeThatGoesChangesNothingBetweenOthers) {
  for (const double weight : {1.0, 2.5}) {
    std::vector<std::pair<std::string, double>> nodes = equal_nodes(9);
    nodes[2].second = weight;
    const Rendezvous all = rendezvous(nodes);
    nodes.erase(nodes.begin() + 5);
    const Rendezvous fewer = rendezvous(nodes);
    for (const std::string& name : names("camera-", 200)) {
      const std::uint64_t item = Rendezvous::hash_of(name);
      std::vector<std::size_t> expected = all.order(item, 9);
      expected.erase(std::find(expected.begin(), expected.end(), 5U));
      for (std::size_t& node : expected) node -= node > 5 ? 1 : 0;
      ASSERT_EQ(fewer.order(item, 9), expected);
    }
  }
}

/// The textbook's order: -w / log(u), the largest first.
TEST(Rendezvous, WeightsAreThoseOfTheLogarithmicForm) {
  std::vector<std::pair<std::string, double>> nodes;
  for (int i = 0; i < 20; ++i) nodes.emplace_back("node-" + std::to_string(i), 0.5 + i * 0.3);
  const Rendezvous weighted = rendezvous(nodes);
  for (const std::string& name : names("", 2000)) {
    const std::uint64_t item = Rendezvous::hash_of(name);
    std::size_t best = 0;
    double best_score = -1;
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      const double u = 1 - std::ldexp(static_cast<double>(weighted.draw(item, node)), -64);
      const double score = -nodes[node].second / std::log(u);
      if (score <= best_score) continue;
      best = node;
      best_score = score;
    }
    ASSERT_EQ(weighted.first(item), best) << name;
  }
}

/// Names as people give them. Within four deviations: one of 15,000 tests of fair dice would fail.
TEST(Rendezvous, SpreadsNamesEvenly) {
  constexpr int kNodes = 50;
  constexpr int kItems = 20'000;
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"", ""}, {"camera-", ""}, {"north/gate-", "/detect"}, {std::string(200, 'x'), ""}, {"", "a"}}) {
    for (const double weight : {0.0, 0.1}) {
      std::vector<std::pair<std::string, double>> nodes = equal_nodes(kNodes);
      std::vector<double> expected;
      double weights = 0;
      for (int i = 0; i < kNodes; ++i) weights += nodes[static_cast<std::size_t>(i)].second += weight * i;
      for (const auto& node : nodes) expected.push_back(kItems * node.second / weights);
      const Rendezvous all = rendezvous(nodes);
      std::vector<int> firsts(kNodes);
      for (const std::string& name : names(before, kItems, after))
        ++firsts[*all.first(Rendezvous::hash_of(name))];
      EXPECT_LT(std::abs(deviations(chi_square(firsts, expected), kNodes - 1)), 4)
          << before << "0" << after << ", weights apart by " << weight;
    }
  }
}

/// What a lost node had goes to all others alike: pairs of first and second choices are independent.
TEST(Rendezvous, SpreadsWhatALostNodeHadEvenly) {
  constexpr int kNodes = 20;
  const Rendezvous all = rendezvous(equal_nodes(kNodes));
  constexpr int kItems = 40'000;
  std::vector<int> pairs(kNodes * kNodes);
  for (const std::string& name : names("camera-", kItems)) {
    const std::vector<std::size_t> order = all.order(Rendezvous::hash_of(name), 2);
    ++pairs[order[0] * kNodes + order[1]];
  }
  std::vector<int> counts;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    if (i / kNodes != i % kNodes) counts.push_back(pairs[i]);
  const std::vector<double> expected(counts.size(), 1.0 * kItems / static_cast<double>(counts.size()));
  EXPECT_LT(std::abs(deviations(chi_square(counts, expected), static_cast<double>(counts.size() - 1))), 4);
}

/// Names that follow each other land together no more often than others.
TEST(Rendezvous, NeighboursAreStrangers) {
  constexpr int kNodes = 20;
  const Rendezvous all = rendezvous(equal_nodes(kNodes));
  constexpr int kItems = 20'000;
  std::vector<int> pairs(kNodes * kNodes);
  std::optional<std::size_t> last;
  for (const std::string& name : names("camera-", kItems + 1)) {
    const std::size_t node = *all.first(Rendezvous::hash_of(name));
    if (last) ++pairs[*last * kNodes + node];
    last = node;
  }
  const std::vector<double> expected(pairs.size(), 1.0 * kItems / kNodes / kNodes);
  EXPECT_LT(std::abs(deviations(chi_square(pairs, expected), kNodes * kNodes - 1)), 4);
}

/// The test has teeth, and FNV-1a alone is not enough.
TEST(Rendezvous, WithoutMixingItWouldNotSpread) {
  constexpr int kNodes = 50;
  constexpr int kItems = 20'000;
  std::vector<std::uint64_t> seeds;
  for (const auto& [name, weight] : equal_nodes(kNodes)) seeds.push_back(base::fnv1a(name));
  std::vector<int> firsts(kNodes);
  for (const std::string& name : names("camera-", kItems)) {
    const std::uint64_t item = base::fnv1a(name);
    const auto least = std::min_element(seeds.begin(), seeds.end(), [&](std::uint64_t a, std::uint64_t b) {
      return (item ^ a) < (item ^ b);
    });
    ++firsts[static_cast<std::size_t>(least - seeds.begin())];
  }
  const std::vector<double> expected(kNodes, 1.0 * kItems / kNodes);
  EXPECT_GT(deviations(chi_square(firsts, expected), kNodes - 1), 50);
}

}  // namespace
}  // namespace vigil::cluster
