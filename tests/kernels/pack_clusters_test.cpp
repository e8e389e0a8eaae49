#include "kernels/fetch_clusters/pack_clusters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/host_buffer.h"
#include "tests/kernels/packed_case.h"

namespace vigil::kernels {
namespace {

constexpr std::int64_t kLayers = 3, kHeads = 3;

/// Clusters of random slots, and room for them: in no order, not side by side.
struct Clusters {
  std::vector<std::int32_t> slots;
  std::vector<ClusterToPack> each;
  std::size_t bytes = 0;

  Clusters(PackedForm form, std::int64_t head_dim, std::int64_t cache_tokens,
           const std::vector<std::int32_t>& counts, Random& random) {
    const auto shuffled = scattered_slots(static_cast<std::int64_t>(counts.size()), 0, 1,
                                          static_cast<std::int64_t>(counts.size()), random);
    std::vector<std::int64_t> begins(counts.size());
    for (const std::int32_t next : shuffled) {
      const auto at = static_cast<std::size_t>(next);
      bytes += static_cast<std::size_t>(16 * (1 + random.below(9)));
      begins[at] = static_cast<std::int64_t>(bytes);
      bytes += static_cast<std::size_t>(kHeads * PackedShape{form, 1, 1, head_dim, counts[at]}.bytes());
    }
    bytes += 16;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      // Some slots belong to no cluster.
      for (std::int64_t skipped = random.below(3); skipped > 0; --skipped) slots.push_back(1'000'000'000);
      each.push_back({begins[i], static_cast<std::int32_t>(slots.size()), counts[i],
                      static_cast<std::int32_t>(random.below(kLayers))});
      const auto its = some_slots(counts[i], cache_tokens, random);
      slots.insert(slots.end(), its.begin(), its.end());
    }
  }
};

/// What pack_kv makes of them, cluster by cluster: of all heads, whose pieces are put together by head.
std::vector<std::byte> one_by_one(Stream& stream, const Cache& cache, const Mirror& memory, PackedForm form,
                                  const Clusters& clusters) {
  std::vector<std::byte> wanted(clusters.bytes, std::byte{0xff});
  const std::int64_t head_dim = cache.layers().first.head_dim;
  for (const ClusterToPack& cluster : clusters.each) {
    if (cluster.tokens == 0) continue;
    Packed packed({form, 1, kHeads, head_dim, cluster.tokens});
    KvLayers layer = cache.layers_in(memory);
    layer.first.base = static_cast<std::byte*>(layer.first.base) +
                       cluster.layer * layer.stride * static_cast<std::int64_t>(size_of(layer.first.dtype));
    layer.count = 1;
    const DeviceArray<std::int32_t> slots(stream, std::span(clusters.slots)
                                                      .subspan(static_cast<std::size_t>(cluster.first),
                                                               static_cast<std::size_t>(cluster.tokens)));
    Mirror there(stream, packed.bytes);
    pack_kv(stream, layer, {slots.data(), 0}, packed.shape, 0, 0, there.data());
    there.fetch();
    auto to = wanted.begin() + cluster.begin;
    for (std::int64_t head = 0; head < kHeads; ++head)
      for (const bool value : {false, true})
        to = std::copy_n(packed.bytes.begin() + packed.shape.offset(0, value, head, 0),
                         packed.shape.segment_bytes(), to);
  }
  return wanted;
}

/// In memory of the host that the device writes to by itself.
std::vector<std::byte> at_once(Stream& stream, const Cache& cache, const Mirror& memory, PackedForm form,
                               const Clusters& clusters) {
  HostMemory host(stream, 1U << 26U);
  const HostBytes to = host.take(clusters.bytes);
  std::memset(to.get(), 0xff, clusters.bytes);
  const DeviceArray<std::int32_t> slots(stream, clusters.slots);
  const DeviceArray<ClusterToPack> each(stream, clusters.each);
  pack_clusters(stream, cache.layers_in(memory),
                {slots.data(), static_cast<std::int64_t>(clusters.slots.size()), each.data(),
                 static_cast<std::int64_t>(clusters.each.size())},
                form, to.get());
  stream.synchronize();
  return {to.get(), to.get() + clusters.bytes};
}

class PackClustersTest : public PackedFormTest {
 protected:
  static void expect_the_bytes_of_pack_kv(const Cache& cache, const Clusters& clusters) {
    Stream stream = test_stream(2);
    const Mirror memory(stream, cache.bytes());
    const auto wanted = one_by_one(stream, cache, memory, form(), clusters);
    const auto found = at_once(stream, cache, memory, form(), clusters);
    const auto differ = std::mismatch(wanted.begin(), wanted.end(), found.begin());
    ASSERT_EQ(differ.first - wanted.begin(), static_cast<std::ptrdiff_t>(clusters.bytes))
        << "heads of " << cache.layers().first.head_dim;
  }
};
INSTANTIATE_TEST_SUITE_P(Forms, PackClustersTest, kPackedForms, form_name);

TEST_P(PackClustersTest, BytesAreThoseOfEachByItself) {
  struct Case {
    std::int64_t head_dim, page_tokens;
  };
  std::uint64_t seed = 1;
  for (const Case& now :
       std::vector<Case>{{6, 16}, {20, 1}, {32, 16}, {64, 1}, {64, 16}, {128, 1}, {256, 16}}) {
    Random random(seed++);
    Cache cache(dtype(), kLayers, 208 / now.page_tokens, now.page_tokens, kHeads, now.head_dim);
    cache.fill(random);
    const Clusters clusters(form(), now.head_dim, cache.tokens(),
                            {1, 63, 64, 65, 0, 200, 1, 2, 129, 128, 0, 0, 7}, random);
    expect_the_bytes_of_pack_kv(cache, clusters);
  }
}

// Of one token and of hundreds, side by side: which block of threads has which.
TEST_P(PackClustersTest, ManyClustersOfAnyLength) {
  for (std::uint64_t seed = 100; seed < 103; ++seed) {
    Random random(seed);
    Cache cache(dtype(), kLayers, 40, 16, kHeads, 32);
    cache.fill(random);
    std::vector<std::int32_t> counts;
    for (int i = 0; i < 300; ++i) {
      const std::int64_t most = random.below(12) == 0 ? 600 : random.below(4) == 0 ? 70 : 4;
      counts.push_back(static_cast<std::int32_t>(random.below(most)));
    }
    expect_the_bytes_of_pack_kv(cache, Clusters(form(), 32, cache.tokens(), counts, random));
  }
}

TEST_P(PackClustersTest, WhatIsNoNumber) {
  constexpr float kInfinite = std::numeric_limits<float>::infinity();
  for (const std::int64_t head_dim : {20, 64}) {
    Random random(200);
    Cache cache(dtype(), kLayers, 16, 16, kHeads, head_dim);
    cache.fill(random);
    for (std::int64_t at = 0; at < cache.elements(); at += 1 + random.below(400))
      cache.set(at, at % 3 == 0 ? std::nanf("") : at % 3 == 1 ? kInfinite : -kInfinite);
    expect_the_bytes_of_pack_kv(cache,
                                Clusters(form(), head_dim, cache.tokens(), {3, 1, 64, 100, 1, 30}, random));
  }
}

TEST_P(PackClustersTest, NoClustersTakeNoBytes) {
  Random random(300);
  Cache cache(dtype(), kLayers, 2, 16, kHeads, 32);
  cache.fill(random);
  expect_the_bytes_of_pack_kv(cache, Clusters(form(), 32, cache.tokens(), {}, random));
  const Clusters empty(form(), 32, cache.tokens(), std::vector<std::int32_t>(20), random);
  ASSERT_FALSE(empty.slots.empty()) << "there are slots that no cluster has";
  expect_the_bytes_of_pack_kv(cache, empty);
}

TEST(PackClustersArgumentsTest, WhatDoesNotFitIsRefused) {
  Stream stream = Stream::cpu(1);
  const Cache cache(DType::bf16, 2, 2, 16, 2, 20);
  alignas(16) std::byte memory[512] = {};
  const std::int32_t slots[] = {4, 3};
  const ClusterToPack one{0, 0, 2, 1};
  const ClustersToPack clusters{slots, 2, &one, 1};
  const auto refused = [&](const KvLayers& from, const ClustersToPack& what, std::byte* to) {
    EXPECT_THROW(pack_clusters(stream, from, what, PackedForm::bf16, to), std::invalid_argument);
  };
  EXPECT_NO_THROW(pack_clusters(stream, cache.layers(), clusters, PackedForm::bf16, memory));
  KvLayers integers = cache.layers(), none = cache.layers(), odd = cache.layers(), flat = cache.layers();
  integers.first.dtype = DType::i32;
  none.first.kv_heads = 0;
  odd.first.head_dim = 5;
  flat.first.page_tokens = 0;
  for (const KvLayers& from : {integers, none, odd, flat}) refused(from, clusters, memory);
  refused(cache.layers(), clusters, memory + 8);
  refused(cache.layers(), {slots, -1, &one, 1}, memory);
  refused(cache.layers(), {slots, 2, &one, -1}, memory);
  refused(cache.layers(), {slots, std::int64_t{1} << 31U, &one, 1}, memory);
  refused(cache.layers(), {slots, 2, &one, std::int64_t{1} << 29U}, memory);
  // Whatever the lists are, nobody looks at them.
  EXPECT_NO_THROW(pack_clusters(stream, cache.layers(), {}, PackedForm::bf16, nullptr));
}

}  // namespace
}  // namespace vigil::kernels
