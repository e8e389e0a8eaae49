// What it costs to put keys into hash clusters, and to choose clusters for a question (kernels/hash_clusters,
// kernels/wicsum), beside a copy on the same device and beside scoring every key. One JSON object a line.
//
//   bench_clusters [cpu | cuda]
//
// Keys of 8 heads of 128 elements in 32 layers, 32 hyperplanes, as V-Rex has them; queries of 10 tokens with
// 4 heads a KV head. `us`: the median of some runs, each of several submitted at once, by the one.
// `floor_bytes` is what has to be read and written at least, and `copy_us` the time of a copy that reads and
// writes as much. Of the tables that are joined, every new token joins a cluster that is there, so that their
// size stays.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/hash_clusters/hash_clusters.h"
#include "kernels/random/random.h"
#include "kernels/wicsum/wicsum.h"
#include "loadtest/kernels/submitted.h"

namespace {

using namespace vigil::kernels;

constexpr std::int64_t kKvHeads = 8, kDim = 128, kCols = kKvHeads * kDim, kPlanes = 32, kGroup = 4,
                       kAsked = 10;

struct Bench : Submitted {
  Buffer random_keys(std::int64_t rows, DType dtype, float scale, std::uint64_t seed) {
    Buffer keys(stream, static_cast<std::size_t>(rows * kCols) * size_of(dtype));
    fill_random(stream, dense(keys.data(), dtype, rows, kCols), seed, scale);
    return keys;
  }
};

/// Tables of so many clusters in all layers.
struct Table {
  Buffer sums, bits, counts, clusters, assigned;
  HashClusters view;

  Table(Bench& bench, std::int64_t layers, std::int64_t capacity, std::int32_t tokens_each)
      : sums(bench.random_keys(layers * capacity, DType::f32, 3 * static_cast<float>(tokens_each), 1)),
        bits(bench.stream, static_cast<std::size_t>(layers * capacity) * 8),
        counts(bench.stream, static_cast<std::size_t>(layers * capacity) * 4),
        clusters(bench.stream, static_cast<std::size_t>(layers) * 4),
        assigned(bench.stream, static_cast<std::size_t>(layers) * 4096 * 4) {
    std::vector<std::uint64_t> hashes;
    for (std::int64_t i = 0; i < layers * capacity; ++i)
      hashes.push_back(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL >> 32U);
    upload(bench.stream, bits.data(), hashes.data(), bits.bytes());
    const std::vector<std::int32_t> many(static_cast<std::size_t>(layers * capacity), tokens_each);
    upload(bench.stream, counts.data(), many.data(), counts.bytes());
    const std::vector<std::int32_t> all(static_cast<std::size_t>(layers),
                                        static_cast<std::int32_t>(capacity));
    upload(bench.stream, clusters.data(), all.data(), clusters.bytes());
    view = {layers,
            kCols,
            kPlanes,
            capacity,
            4096,
            ClusterBits::first,
            sums.as<float>(),
            nullptr,
            bits.as<std::uint64_t>(),
            counts.as<std::int32_t>(),
            clusters.as<std::int32_t>(),
            assigned.as<std::int32_t>()};
  }
};

void join(Bench& bench, std::int64_t layers, std::int64_t tokens, std::int64_t clusters) {
  const Table table(bench, layers, clusters, 30);
  const std::int64_t rows = layers * tokens;
  const Buffer keys = bench.random_keys(rows, DType::bf16, 3, 2);
  const ConstMatrix view = dense(static_cast<const void*>(keys.data()), DType::bf16, rows, kCols);
  const DeviceArray<float> planes(bench.stream, hyperplanes(kPlanes, kCols, 1));
  const Buffer projections(bench.stream, static_cast<std::size_t>(rows * kPlanes) * 4);
  const Buffer hashes(bench.stream, static_cast<std::size_t>(rows) * 8);
  const double hash_us = bench.median_us([&] {
    hash_keys(bench.stream, view, planes.data(), kPlanes, projections.as<float>(),
              hashes.as<std::uint64_t>());
  });
  const double join_us = bench.median_us([&] {
    join_clusters(bench.stream, view, hashes.as<std::uint64_t>(), projections.as<float>(), 0, kPlanes + 1,
                  table.view);
  });
  // Keys and hyperplanes once to hash them; keys once more, the bits of all clusters, and the sums that
  // change, read and written.
  const std::int64_t floor = rows * kCols * 2 * 2 + kPlanes * kCols * 4 + layers * clusters * 8 +
                             layers * std::min(tokens, clusters) * kCols * 8;
  std::printf(
      R"({"join": {"layers": %ld, "tokens": %ld, "clusters": %ld}, "hash_us": %.1f, "join_us": %.1f, )"
      R"("us_per_layer": %.2f, "floor_bytes": %ld, "copy_us": %.1f})"
      "\n",
      static_cast<long>(layers), static_cast<long>(tokens), static_cast<long>(clusters), hash_us, join_us,
      (hash_us + join_us) / static_cast<double>(layers), static_cast<long>(floor), bench.copy_us(floor));
}

void select(Bench& bench, std::int64_t clusters, std::int32_t tokens_each, const char* name,
            const WicsumChoice& choice) {
  const Table table(bench, 1, clusters, tokens_each);
  const ClusterKeys keys{table.view.sums, table.view.counts, table.view.clusters, clusters, kKvHeads, kDim};
  const Buffer q = bench.random_keys(kAsked * kGroup, DType::bf16, 3, 3);
  const Buffer lists(bench.stream, static_cast<std::size_t>(kKvHeads * (clusters + 2)) * 4);
  auto* counts = lists.as<std::int32_t>();
  const double us = bench.median_us([&] {
    select_clusters(bench.stream,
                    dense(static_cast<const void*>(q.data()), DType::bf16, kAsked, kCols * kGroup), keys,
                    0.0883883F, choice, {counts + 2 * kKvHeads, counts, counts + kKvHeads});
  });
  std::vector<std::int32_t> count(kKvHeads);
  download(bench.stream, count.data(), counts, kKvHeads * 4);
  std::int64_t chosen = 0;
  for (const std::int32_t each : count) chosen += each;
  const std::int64_t floor = clusters * (kCols + 1) * 4 + kAsked * kGroup * kCols * 2;
  std::printf(R"({"select": "%s", "clusters": %ld, "tokens": %ld, "chosen": %.3f, "us": %.1f, )"
              R"("floor_bytes": %ld, "copy_us": %.1f})"
              "\n",
              name, static_cast<long>(clusters), static_cast<long>(clusters * tokens_each),
              static_cast<double>(chosen) / static_cast<double>(clusters * kKvHeads), us,
              static_cast<long>(floor), bench.copy_us(floor));
}

int run(std::string_view device) {
  if (device != "cpu" && device != "cuda") throw std::invalid_argument("bench_clusters [cpu | cuda]");
  Bench bench = device == "cuda" ? Bench{{Stream::cuda(), 20, 15}} : Bench{{Stream::cpu(), 1, 5}};
  join(bench, 32, 10, 1300);
  join(bench, 32, 256, 8192);
  select(bench, 1300, 31, "resv", {WicsumScores::raw, WicsumRows::united, 0.3, 0});
  select(bench, 1300, 31, "resv-mass", {WicsumScores::exp, WicsumRows::united, 0.3, 0});
  select(bench, 1300, 31, "resv-pooled", {WicsumScores::exp, WicsumRows::pooled, 0.3, 0});
  select(bench, 16384, 31, "resv-mass", {WicsumScores::exp, WicsumRows::united, 0.3, 0});
  select(bench, 40'000, 1, "topk", {WicsumScores::exp, WicsumRows::pooled, 0, 6'000});
  return EXIT_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "cpu");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_clusters: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
