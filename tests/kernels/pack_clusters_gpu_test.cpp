// Clusters of a past as one launch packs them into the host's memory, beside what the CPU makes of the same.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/device/host_buffer.h"
#include "kernels/fetch_clusters/pack_clusters.h"
#include "tests/kernels/on_device.h"
#include "tests/kernels/packed_case.h"

namespace vigil::kernels {
namespace {

constexpr std::int64_t kLayers = 4, kHeads = 2, kHead = 128, kTokens = 2000;

/// Tokens side by side as a past keeps those of its open block: [token][layer][key, value][head][head_dim].
KvLayers staged(void* memory, DType dtype) {
  constexpr std::int64_t kRow = kHeads * kHead;
  return {{memory, dtype, kTokens, kLayers * 2 * kRow, kRow, 1, kHeads, kHead}, kLayers, 2 * kRow};
}

struct Packing {
  std::vector<std::int32_t> slots;
  std::vector<ClusterToPack> clusters;
  std::int64_t bytes = 0;

  /// In each layer every token is in a cluster; few clusters have most of them.
  Packing(PackedForm form, Random& random) {
    for (std::int32_t layer = 0; layer < kLayers; ++layer) {
      const auto first = static_cast<std::int32_t>(slots.size());
      const auto its = some_slots(kTokens, kTokens, random);
      slots.insert(slots.end(), its.begin(), its.end());
      for (std::int32_t at = 0; at < kTokens;) {
        const auto most = static_cast<std::int32_t>(random.below(20) == 0 ? 300 : 12);
        const std::int32_t tokens = std::min(static_cast<std::int32_t>(1 + random.below(most)),
                                             static_cast<std::int32_t>(kTokens) - at);
        clusters.push_back({bytes, first + at, tokens, layer});
        const std::int64_t piece = kHeads * PackedShape{form, 1, 1, kHead, tokens}.bytes();
        bytes += (piece + 127) / 128 * 128;
        at += tokens;
      }
    }
  }
  ClustersToPack on(const DeviceArray<std::int32_t>& its_slots,
                    const DeviceArray<ClusterToPack>& its_clusters) const {
    return {its_slots.data(), static_cast<std::int64_t>(slots.size()), its_clusters.data(),
            static_cast<std::int64_t>(clusters.size())};
  }
  std::vector<std::byte> pack(Stream& stream, const KvLayers& from, PackedForm form) const {
    HostMemory host(stream, 1U << 28U);
    const HostBytes to = host.take(static_cast<std::size_t>(bytes));
    std::memset(to.get(), 0xff, static_cast<std::size_t>(bytes));
    const DeviceArray<std::int32_t> its_slots(stream, slots);
    const DeviceArray<ClusterToPack> its_clusters(stream, clusters);
    pack_clusters(stream, from, on(its_slots, its_clusters), form, to.get());
    stream.synchronize();
    return {to.get(), to.get() + bytes};
  }
};

TEST(PackClustersGpuTest, BytesInTheHostsMemoryAreThoseOfTheCpu) {
  if (cuda_devices() == 0) GTEST_SKIP() << "skipped, no GPU";
  Stream gpu = Stream::cuda(), cpu = Stream::cpu(2);
  for (const DType dtype : {DType::bf16, DType::f32}) {
    Random random(dtype == DType::f32 ? 2 : 1);
    TestMatrix cache(dtype, 1, kTokens * kLayers * 2 * kHeads * kHead);
    for (std::int64_t i = 0; i < cache.cols(); ++i)
      if (random.below(5000) != 0) cache.set(0, i, 4 * random.number());
    const Mirror there(gpu, cache.bytes());
    for (const PackedForm form : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4}) {
      const Packing packing(form, random);
      const auto wanted = packing.pack(cpu, staged(cache.view().data, dtype), form);
      const auto found = packing.pack(gpu, staged(there.data(), dtype), form);
      const auto differ = std::mismatch(wanted.begin(), wanted.end(), found.begin());
      EXPECT_EQ(differ.first - wanted.begin(), packing.bytes)
          << name_of(form) << " of a cache in " << name_of(dtype);
    }
  }
}

}  // namespace
}  // namespace vigil::kernels
