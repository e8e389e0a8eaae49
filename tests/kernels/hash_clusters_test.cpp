#include "kernels/hash_clusters/hash_clusters.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/hash_clusters/hash_clusters_reference.h"
#include "tests/kernels/cluster_table.h"
#include "tests/kernels/resv_golden.h"

namespace vigil::kernels {
namespace {

struct Hashed {
  std::vector<float> projections;
  std::vector<std::uint64_t> hashes;
};

Hashed hash_of(Stream& stream, const TestMatrix& keys, const std::vector<float>& planes, std::int64_t count) {
  Values<float> normals(stream, planes);
  Values<float> projections(stream, std::vector<float>(static_cast<std::size_t>(keys.rows() * count), -7));
  Values<std::uint64_t> hashes(stream, std::vector<std::uint64_t>(static_cast<std::size_t>(keys.rows()), 7));
  hash_keys(stream, OnDevice(stream, keys), normals.data(), count, projections.data(), hashes.data());
  return {projections.fetch(), hashes.fetch()};
}

/// Tokens [first, first + count) of all layers, of keys [layers * tokens, cols].
TestMatrix some_of(const TestMatrix& keys, DType dtype, std::int64_t layers, std::int64_t first,
                   std::int64_t count, std::int64_t gap = 0) {
  TestMatrix some(dtype, layers * count, keys.cols(), gap);
  const std::int64_t tokens = keys.rows() / layers;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    for (std::int64_t i = 0; i < count; ++i)
      for (std::int64_t d = 0; d < keys.cols(); ++d)
        some.set(layer * count + i, d, keys.get(layer * tokens + first + i, d));
  return some;
}

/// Hashes these tokens and lets them join.
void join(Stream& stream, const TestMatrix& keys, const std::vector<float>& planes, std::int64_t first,
          int threshold, const ClusterTable& table) {
  const HashClusters to = table.view();
  const Hashed hashed = hash_of(stream, keys, planes, to.planes);
  Values<float> projections(stream, hashed.projections);
  Values<std::uint64_t> hashes(stream, hashed.hashes);
  join_clusters(stream, OnDevice(stream, keys), hashes.data(), projections.data(), first, threshold, to);
  stream.synchronize();
}

class HashClustersTest : public ::testing::TestWithParam<DType> {
 protected:
  void SetUp() override { VIGIL_SKIP_WITHOUT_DEVICE(); }
};
INSTANTIATE_TEST_SUITE_P(Types, HashClustersTest, ::testing::Values(DType::f32, DType::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(HashClustersTest, ChoosesWhatNumpyChooses) {
  for (const ResvGolden& now : ResvGoldenFile::read()) {
    TestMatrix keys(GetParam(), now.layers * now.tokens, now.cols());
    for (std::int64_t i = 0; i < keys.rows() * keys.cols(); ++i)
      keys.set(i / keys.cols(), i % keys.cols(), now.keys[static_cast<std::size_t>(i)]);
    const std::vector<float> planes = hyperplanes(now.planes, now.cols(), now.seed);
    Stream stream = test_stream(2);
    EXPECT_EQ(hash_of(stream, keys, planes, now.planes).hashes, now.hashes) << now.name;
    for (const ClusterBits compared : {ClusterBits::first, ClusterBits::mean}) {
      ClusterTable table(stream, now.layers, now.cols(), now.planes, now.tokens, now.tokens, compared);
      std::int64_t first = 0;
      for (const std::int64_t count : now.calls) {
        join(stream, some_of(keys, GetParam(), now.layers, first, count, 3), planes, first, now.threshold,
             table);
        first += count;
      }
      const auto& wanted = compared == ClusterBits::first ? now.first : now.mean;
      for (std::int64_t layer = 0; layer < now.layers; ++layer) {
        const auto& one = wanted[static_cast<std::size_t>(layer)];
        EXPECT_EQ(table.assigned(layer), one.assigned) << now.name << ", layer " << layer;
        EXPECT_EQ(table.counts(layer), one.counts) << now.name;
        EXPECT_EQ(table.bits(layer), one.bits) << now.name;
      }
    }
  }
}

// Bit for bit: no order of additions is another one.
TEST_P(HashClustersTest, ProjectionsAreThoseOfTheReferenceBitForBit) {
  Random random(1);
  Stream stream = test_stream(2);
  for (const std::int64_t cols : {1, 31, 32, 33, 100, 1024})
    for (const std::int64_t count : {1, 3, 32, 33, 64}) {
      const TestMatrix keys = TestMatrix::random(GetParam(), cols == 100 ? 700 : 11, cols, random, 5, 2);
      const std::vector<float> planes = hyperplanes(count, cols, 3);
      const Hashed found = hash_of(stream, keys, planes, count);
      for (std::int64_t i = 0; i < keys.rows(); ++i)
        for (std::int64_t p = 0; p < count; ++p) {
          const float wanted = reference::projection(keys.view(), i, planes.data() + p * cols);
          ASSERT_EQ(std::bit_cast<std::uint32_t>(found.projections[static_cast<std::size_t>(i * count + p)]),
                    std::bit_cast<std::uint32_t>(wanted))
              << i << ", " << p << " of " << count << " in " << cols;
          ASSERT_EQ((found.hashes[static_cast<std::size_t>(i)] >> static_cast<unsigned>(p)) & 1U,
                    wanted > 0 ? 1U : 0U);
        }
      for (const std::uint64_t hash : found.hashes) ASSERT_LE(std::bit_width(hash), count);
    }
}

TEST_P(HashClustersTest, ManyTokensJoinAsOneAfterTheOtherWould) {
  Random random(2);
  constexpr std::int64_t kLayers = 3, kTokens = 5000, kCols = 40, kPlanes = 33;
  // Some hundreds of places that are seen again, each a little off.
  TestMatrix keys(GetParam(), kLayers * kTokens, kCols);
  const TestMatrix places = TestMatrix::random(DType::f32, kLayers * 300, kCols, random, 4);
  for (std::int64_t i = 0; i < keys.rows(); ++i) {
    const std::int64_t place = i / kTokens * 300 + random.below(300);
    for (std::int64_t d = 0; d < kCols; ++d) keys.set(i, d, places.get(place, d) + random.number() / 2);
  }
  const std::vector<float> planes = hyperplanes(kPlanes, kCols, 9);
  Stream stream = test_stream(2);
  for (const ClusterBits compared : {ClusterBits::first, ClusterBits::mean}) {
    ClusterTable table(stream, kLayers, kCols, kPlanes, 3000, kTokens + 10, compared);
    // A call of more tokens than join in one launch on a GPU, and of few.
    std::int64_t first = 0;
    for (const std::int64_t count : {1, 300, 4500, 199}) {
      join(stream, some_of(keys, GetParam(), kLayers, first, count), planes, first, 5, table);
      first += count;
    }
    ASSERT_EQ(first, kTokens);
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      reference::Clusters wanted(compared, 3000, 5);
      for (std::int64_t i = 0; i < kTokens; ++i) {
        std::vector<float> key, projections;
        for (std::int64_t d = 0; d < kCols; ++d) key.push_back(keys.get(layer * kTokens + i, d));
        for (std::int64_t p = 0; p < kPlanes; ++p)
          projections.push_back(
              reference::projection(keys.view(), layer * kTokens + i, planes.data() + p * kCols));
        wanted.join(key, projections);
      }
      ASSERT_GT(wanted.bits.size(), 300U);
      ASSERT_LT(wanted.bits.size(), 2500U);
      auto assigned = table.assigned(layer);
      EXPECT_TRUE(std::all_of(assigned.begin() + kTokens, assigned.end(),
                              [](auto cluster) { return cluster == -7; }));
      assigned.resize(kTokens);
      ASSERT_EQ(assigned, wanted.assigned);
      ASSERT_EQ(table.counts(layer), wanted.counts);
      ASSERT_EQ(table.bits(layer), wanted.bits);
      const std::vector<float> sums = table.sums(layer);
      for (std::size_t c = 0; c < wanted.sums.size(); ++c)
        for (std::size_t d = 0; d < static_cast<std::size_t>(kCols); ++d)
          ASSERT_EQ(sums[c * kCols + d], wanted.sums[c][d]) << c << ", " << d;
    }
  }
}

// Whoever is as near as the threshold begins a cluster, of equal distances the older cluster is taken.
TEST(HashClusterTest, ThresholdIsExclusiveAndTiesGoToTheOldest) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream(2);
  const TestMatrix keys = [] {
    TestMatrix some(DType::f32, 1, 4);
    for (std::int64_t d = 0; d < 4; ++d) some.set(0, d, 1);
    return some;
  }();
  ClusterTable table(stream, 1, 4, 8, 10, 10, ClusterBits::first);
  Values<float> projections(stream, std::vector<float>(8));
  std::int64_t token = 0;
  // Distances to the ones before: 0b0000 | 4 | 2 and 2: the first | 3 and 1: the second | 0 and 4
  for (const std::uint64_t bits : {0b0000U, 0b1111U, 0b0011U, 0b0111U, 0b0000U}) {
    Values<std::uint64_t> hash(stream, {bits});
    join_clusters(stream, OnDevice(stream, keys), hash.data(), projections.data(), token++, 3, table.view());
    stream.synchronize();
  }
  auto assigned = table.assigned(0);
  assigned.resize(5);
  EXPECT_EQ(assigned, (std::vector<std::int32_t>{0, 1, 0, 1, 0}));
  EXPECT_EQ(table.counts(0), (std::vector<std::int32_t>{3, 2}));
  // At a distance of 3 from the nearest.
  Values<std::uint64_t> far(stream, {0b1110000U});
  join_clusters(stream, OnDevice(stream, keys), far.data(), projections.data(), token, 3, table.view());
  stream.synchronize();
  EXPECT_EQ(table.count(0), 3);
}

TEST(HashClusterTest, ATableWithoutRoomTakesTheNearest) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream(2);
  TestMatrix keys(DType::f32, 3, 4);
  for (std::int64_t i = 0; i < 12; ++i) keys.set(i / 4, i % 4, static_cast<float>(i));
  ClusterTable table(stream, 1, 4, 8, 2, 3, ClusterBits::first);
  Values<float> projections(stream, std::vector<float>(24));
  Values<std::uint64_t> hashes(stream, {0x00, 0xff, 0x7f});
  join_clusters(stream, OnDevice(stream, keys), hashes.data(), projections.data(), 0, 0, table.view());
  stream.synchronize();
  EXPECT_EQ(table.assigned(0), (std::vector<std::int32_t>{0, 1, 1}));
  EXPECT_EQ(table.sums(0), (std::vector<float>{0, 1, 2, 3, 12, 14, 16, 18}));
}

// What is no number has bits like others, and joins like others.
TEST(HashClusterTest, WhatIsNoNumberHasNoBit) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream(2);
  TestMatrix keys(DType::f32, 2, 32);
  for (std::int64_t d = 0; d < 32; ++d) {
    keys.set(0, d, std::numeric_limits<float>::quiet_NaN());
    keys.set(1, d, 0);
  }
  const Hashed found = hash_of(stream, keys, hyperplanes(64, 32, 1), 64);
  EXPECT_EQ(found.hashes, (std::vector<std::uint64_t>{0, 0}));
}

// The moments of a normal distribution, and numbers that do not change with the shape's rest.
TEST(HashClusterTest, HyperplanesAreNormal) {
  const std::vector<float> all = hyperplanes(64, 1024, 7);
  double mean = 0, square = 0, fourth = 0;
  for (const float value : all) {
    mean += value;
    square += double{value} * value;
    fourth += std::pow(double{value}, 4);
    ASSERT_EQ(value * 65536, std::round(value * 65536));
  }
  const auto count = static_cast<double>(all.size());
  EXPECT_NEAR(mean / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(square / count, 1, 5 * std::sqrt(2 / count));
  EXPECT_NEAR(fourth / count, 3, 5 * std::sqrt(96 / count));
  EXPECT_EQ(hyperplanes(1, 1024, 7), std::vector<float>(all.begin(), all.begin() + 1024));
  EXPECT_NE(hyperplanes(1, 1024, 8), hyperplanes(1, 1024, 7));
}

TEST(HashClusterTest, RefusesWhatDoesNotFit) {
  EXPECT_THROW(hyperplanes(0, 4, 1), std::invalid_argument);
  EXPECT_THROW(hyperplanes(65, 4, 1), std::invalid_argument);
  EXPECT_THROW(hyperplanes(1, 0, 1), std::invalid_argument);
  Stream stream = Stream::cpu(1);
  std::vector<float> numbers(64);
  std::vector<std::uint64_t> hashes(4);
  TestMatrix keys(DType::f32, 4, 8);
  EXPECT_THROW(hash_keys(stream, keys.view(), numbers.data(), 65, numbers.data(), hashes.data()),
               std::invalid_argument);
  EXPECT_THROW(hash_keys(stream, dense(numbers.data(), DType::i32, 4, 8), numbers.data(), 1, numbers.data(),
                         hashes.data()),
               std::invalid_argument);
  const auto refused = [&](HashClusters to, std::int64_t first) {
    EXPECT_THROW(join_clusters(stream, keys.view(), hashes.data(), numbers.data(), first, 7, to),
                 std::invalid_argument);
  };
  const HashClusters good{2, 8, 4, 2, 2, ClusterBits::first};
  refused(good, 1);  // three tokens in a table of two
  refused(good, -1);
  for (auto change : {&HashClusters::layers, &HashClusters::cols, &HashClusters::capacity}) {
    HashClusters bad = good;
    bad.*change = change == &HashClusters::layers ? 3 : change == &HashClusters::cols ? 9 : 0;
    refused(bad, 0);
  }
}

}  // namespace
}  // namespace vigil::kernels
