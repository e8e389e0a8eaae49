#include "engine/kv/retrieval/hc_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "engine/kv/retrieval/hc_cost.h"
#include "kernels/rope/rope.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/resv_golden.h"

namespace vigil::retrieval {
namespace {

using kernels::ClusterBits;
using kernels::DType;
using kernels::OnDevice;
using kernels::Random;
using kernels::Stream;
using kernels::test_stream;
using kernels::TestMatrix;

/// Tokens [first, first + count) of all layers, of keys [layers, tokens, cols].
TestMatrix some_of(const std::vector<float>& keys, std::int64_t layers, std::int64_t cols, std::int64_t first,
                   std::int64_t count) {
  const std::int64_t tokens = static_cast<std::int64_t>(keys.size()) / layers / cols;
  TestMatrix some(DType::f32, layers * count, cols, 1);
  for (std::int64_t row = 0; row < layers * count; ++row)
    for (std::int64_t d = 0; d < cols; ++d)
      some.set(row, d,
               keys[static_cast<std::size_t>((row / count * tokens + first + row % count) * cols + d)]);
  return some;
}

KeyShape shape_of(const ResvGolden& now) {
  return {static_cast<int>(now.layers), static_cast<int>(now.kv_heads), static_cast<int>(now.head_dim)};
}

ResvSettings settings_of(const ResvGolden& now, const ResvGolden::Choice& choice) {
  ResvSettings settings;
  settings.n_hp = static_cast<int>(now.planes);
  settings.th_hp = now.threshold;
  settings.th_wics = choice.ratio;
  settings.scores = scores_named(choice.scores);
  settings.rows = rows_named(choice.rows);
  settings.bits = bits_named(choice.compared);
  settings.seed = now.seed;
  return settings;
}

// From keys to clusters to lists, in tables that begin with room for one and grow on the way.
TEST(HcTableTest, ChoosesWhatNumpyChooses) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  int compared = 0;
  for (const ResvGolden& now : ResvGoldenFile::read()) {
    Stream stream = test_stream(2);
    TestMatrix q(DType::f32, now.asked, now.heads * now.head_dim);
    for (std::int64_t i = 0; i < q.rows() * q.cols(); ++i)
      q.set(i / q.cols(), i % q.cols(), now.queries[static_cast<std::size_t>(i)]);
    const OnDevice asked(stream, q);
    for (const ResvGolden::Choice& choice : now.choices) {
      if (choice.tokens > 0) continue;
      HcTable table(stream, shape_of(now), settings_of(now, choice), {1, 1});
      std::int64_t first = 0;
      for (const std::int64_t count : now.calls) {
        const TestMatrix keys = some_of(now.keys, now.layers, now.cols(), first, count);
        table.append(stream, {OnDevice(stream, keys)});
        first += count;
      }
      const auto& clusters = choice.compared == "mean" ? now.mean : now.first;
      ClusterStore& store = table.store();
      EXPECT_EQ(store.tokens(), now.tokens);
      for (int layer = 0; layer < now.layers; ++layer) {
        EXPECT_EQ(store.assigned(stream, layer), clusters[static_cast<std::size_t>(layer)].assigned)
            << now.name;
        EXPECT_EQ(store.counts(stream, layer), clusters[static_cast<std::size_t>(layer)].counts) << now.name;
      }
      const auto layer = static_cast<int>(choice.layer);
      EXPECT_EQ(store.choose(stream, store.keys(layer), asked, now.scale, table.choice()), choice.chosen)
          << now.name << ": " << choice.scores << ", " << choice.rows << ", " << choice.ratio;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

// The way that stays on the device writes what the other one brings.
TEST(HcTableTest, SelectsOnTheDevice) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Stream stream = test_stream(2);
  const KeyShape shape{2, 2, 8};
  HcTable table(stream, shape, resv_named("resv-mass"), {64, 64});
  Random random(3);
  const TestMatrix keys = TestMatrix::random(DType::bf16, 2 * 50, 16, random, 3);
  table.append(stream, {OnDevice(stream, keys)});
  const TestMatrix q = TestMatrix::random(DType::bf16, 3, 32, random, 2);
  const OnDevice asked(stream, q);
  const std::int64_t capacity = table.store().capacity();
  const kernels::Buffer lists(stream, static_cast<std::size_t>(2 * capacity + 4) * 4);
  auto* counts = lists.as<std::int32_t>();
  table.select(stream, 1, asked, 0.35F, {counts + 4, counts, counts + 2});
  std::vector<std::int32_t> found(lists.bytes() / 4);
  kernels::download(stream, found.data(), lists.data(), lists.bytes());
  const auto wanted = table.store().choose(stream, table.store().keys(1), asked, 0.35F, table.choice());
  const auto sizes = table.store().counts(stream, 1);
  for (std::size_t head = 0; head < 2; ++head) {
    const auto begin = found.begin() + 4 + static_cast<std::ptrdiff_t>(head) * capacity;
    EXPECT_EQ(std::vector<std::int32_t>(begin, begin + found[head]), wanted[head]);
    std::int32_t tokens = 0;
    for (const std::int32_t c : wanted[head]) tokens += sizes[static_cast<std::size_t>(c)];
    EXPECT_EQ(found[2 + head], tokens);
    EXPECT_GT(tokens, 0);
  }
}

/// A wall of some tokens at some times, turned by RoPE as a cache has them: [times, tokens] of one layer.
struct Wall {
  static constexpr std::int64_t kTokens = 12, kHeads = 2, kDim = 64, kPairs = kDim / 2;
  std::vector<kernels::RopeFrequency> frequencies;
  TestMatrix plain;

  explicit Wall(Random& random) : plain(TestMatrix::random(DType::f32, kTokens, kHeads * kDim, random, 2)) {
    for (std::int32_t j = 0; j < kPairs; ++j)
      frequencies.push_back({std::pow(1e6F, -static_cast<float>(j) / kPairs), 0});
  }

  /// cos and sin of that time, or back from it.
  std::pair<std::vector<float>, std::vector<float>> angles(std::int32_t time) const {
    std::vector<float> cos(kTokens * kPairs), sin(cos);
    Stream host = Stream::cpu(1);
    const std::vector<kernels::RopePosition> positions(kTokens, {time, 0, 0});
    kernels::rope_angles(host, positions.data(), kTokens, frequencies.data(), kPairs,
                         kernels::RopeAngles::wide, cos.data(), sin.data());
    return {cos, sin};
  }
  TestMatrix at(std::int32_t time) const {
    TestMatrix keys = plain;
    Stream host = Stream::cpu(1);
    const auto [cos, sin] = angles(time);
    kernels::rope(host, keys.view(), kDim, cos.data(), sin.data());
    TestMatrix rounded(DType::bf16, kTokens, kHeads * kDim);
    for (std::int64_t i = 0; i < kTokens; ++i)
      for (std::int64_t d = 0; d < keys.cols(); ++d) rounded.set(i, d, keys.get(i, d));
    return rounded;
  }
};

// The same wall an hour later: apart as it lies in the cache, one cluster a token where it stands still.
TEST(HcTableTest, AWallThatStandsStillStaysOneAnHourLater) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(5);
  const Wall wall(random);
  const std::vector<std::int32_t> times{10, 11, 3600, 7213, 100'000'000};
  Stream stream = test_stream(2);
  const KeyShape shape{1, Wall::kHeads, Wall::kDim};
  HcTable still(stream, shape, resv_named("resv-still")), rotated(stream, shape, resv_named("resv"));
  for (const std::int32_t time : times) {
    const TestMatrix keys = wall.at(time);
    const auto [cos, sin] = wall.angles(-time);
    const kernels::DeviceArray<float> back_cos(stream, cos), back_sin(stream, sin);
    const OnDevice there(stream, keys);
    const NewKeys now{there, back_cos.data(), back_sin.data()};
    still.append(stream, now);
    rotated.append(stream, now);
    EXPECT_TRUE(there.view().data != nullptr);
  }
  std::vector<std::int32_t> once(Wall::kTokens);
  for (std::int32_t i = 0; i < Wall::kTokens; ++i) once[static_cast<std::size_t>(i)] = i;
  std::vector<std::int32_t> wanted;
  for (std::size_t time = 0; time < times.size(); ++time)
    wanted.insert(wanted.end(), once.begin(), once.end());
  EXPECT_EQ(still.store().assigned(stream, 0), wanted);
  EXPECT_GT(rotated.store().clusters(stream, 0), Wall::kTokens * 3);
  // The keys that they are scored by are those at time 0.
  const kernels::ClusterKeys keys = still.store().keys(0);
  std::vector<float> sums(Wall::kTokens * static_cast<std::size_t>(shape.cols()));
  kernels::download(stream, sums.data(), keys.sums, sums.size() * sizeof(float));
  for (std::size_t at = 0; at < sums.size(); ++at)
    ASSERT_NEAR(sums[at] / 5,
                wall.plain.get(static_cast<std::int64_t>(at) / shape.cols(),
                               static_cast<std::int64_t>(at) % shape.cols()),
                0.02);
}

TEST(HcTableTest, TablesThatGrowForgetNothing) {
  VIGIL_SKIP_WITHOUT_DEVICE();
  Random random(6);
  Stream stream = test_stream(2);
  const KeyShape shape{3, 2, 8};
  for (const ClusterBits bits : {ClusterBits::first, ClusterBits::mean}) {
    ResvSettings settings;
    settings.bits = bits;
    settings.th_hp = 5;
    HcTable small(stream, shape, settings, {1, 1}), large(stream, shape, settings, {2000, 2000});
    for (int call = 0; call < 60; ++call) {
      const TestMatrix keys = TestMatrix::random(DType::f32, 3 * (1 + random.below(12)), 16, random);
      const OnDevice there(stream, keys);
      small.append(stream, {there});
      large.append(stream, {there});
    }
    EXPECT_GT(small.store().capacity(), 50);
    EXPECT_EQ(large.store().capacity(), 2000);
    for (int layer = 0; layer < 3; ++layer) {
      EXPECT_EQ(small.store().assigned(stream, layer), large.store().assigned(stream, layer));
      EXPECT_EQ(small.store().counts(stream, layer), large.store().counts(stream, layer));
      const auto all = static_cast<std::size_t>(small.store().clusters(stream, layer) * shape.cols());
      std::vector<float> grown(all), whole(all);
      kernels::download(stream, grown.data(), small.store().keys(layer).sums, all * sizeof(float));
      kernels::download(stream, whole.data(), large.store().keys(layer).sums, all * sizeof(float));
      EXPECT_EQ(grown, whole);
    }
  }
}

// Section VI.B: 1.67 % of the cache with 32 tokens a cluster, at 8 heads of 128 elements.
TEST(HcTableTest, CostsWhatThePaperSays) {
  const KeyShape llama{32, 8, 128};
  EXPECT_NEAR(paper_cost(llama).share(32), 0.0167, 0.00005);
  // A table of ours has sums in f32: about twice that.
  EXPECT_NEAR(table_cost(llama, resv_named("resv")).share(32), 0.0323, 0.00005);
  EXPECT_NEAR(table_cost(llama, resv_named("resv-mean")).share(32), 0.0333, 0.00005);
  // The 7B model's shape: half the heads, and the same for each token and cluster beside the key.
  const KeyShape qwen{28, 4, 128};
  EXPECT_NEAR(paper_cost(qwen).share(32), 0.0177, 0.00005);
  EXPECT_NEAR(table_cost(qwen, resv_named("resv")).share(32), 0.0334, 0.00005);
}

// What a store says it has is what it costs: all rooms times what each needs.
TEST(HcTableTest, BytesAreThoseOfItsRooms) {
  Stream stream = Stream::cpu(1);
  const KeyShape shape{3, 2, 8};
  for (const char* name : {"resv", "resv-mean"}) {
    const ResvSettings settings = resv_named(name);
    const HcTable table(stream, shape, settings, {100, 1000});
    const HcCost cost = table_cost(shape, settings);
    EXPECT_EQ(static_cast<double>(table.store().bytes()), 3 * (100 * cost.cluster + 1000 * cost.token + 4));
  }
}

TEST(HcTableTest, RefusesWhatDoesNotFit) {
  Stream stream = Stream::cpu(1);
  const KeyShape shape{2, 2, 8};
  ResvSettings bad;
  bad.n_hp = 0;
  EXPECT_THROW(HcTable(stream, shape, bad), std::invalid_argument);
  EXPECT_THROW(HcTable(stream, {0, 2, 8}, {}), std::invalid_argument);
  EXPECT_THROW(HcTable(stream, shape, {}, {0, 1}), std::invalid_argument);
  EXPECT_THROW(HcTable(stream, {2, 2, 7}, resv_named("resv-still")), std::invalid_argument);
  HcTable table(stream, shape, resv_named("resv-still"));
  const TestMatrix keys(DType::f32, 4, 16), odd(DType::f32, 3, 16), narrow(DType::f32, 4, 15);
  EXPECT_THROW(table.append(stream, {keys.view()}), std::invalid_argument) << "no angles";
  EXPECT_THROW(table.append(stream, {odd.view()}), std::invalid_argument);
  EXPECT_THROW(table.append(stream, {narrow.view()}), std::invalid_argument);
  table.append(stream, {TestMatrix(DType::f32, 0, 16).view()});
  EXPECT_EQ(table.store().tokens(), 0);
}

}  // namespace
}  // namespace vigil::retrieval
