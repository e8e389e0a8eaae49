// What it takes to bring chosen clusters from the host's memory to the GPU, beside one plain copy of as many
// bytes and cudaMemcpyBatchAsync of the same pieces, and to attend to them then, beside a copy on the device
// that reads as many bytes; and to pack clusters into the host's memory, beside one plain copy of as many
// bytes and a call of pack_kv for each cluster and head. One JSON object a line; medians.
//
//   bench_fetch_clusters_cuda
//
// A layer of V-Rex's frame: 8 KV heads of 128, 32,768 tokens on the host in clusters of so many tokens each,
// about a third of which each head has chosen, others for each; 40 query rows a KV head. Packed are four
// layers of 2,048 tokens of a cache in bf16, as a past has them of its open block.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/listed_attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/cuda_queue.h"
#include "kernels/device/cuda_timer.h"
#include "kernels/device/host_buffer.h"
#include "kernels/fetch_clusters/fetch_clusters.h"
#include "kernels/fetch_clusters/pack_clusters.h"
#include "kernels/random/random.h"

namespace {

using namespace vigil::kernels;

constexpr std::int64_t kHeads = 8, kDim = 128, kGroup = 4, kPast = 32768, kPageTokens = 64;
/// Of an H200.
constexpr int kMultiprocessors = 132;
constexpr int kRuns = 21;
/// Copies of a layer's pieces that take turns, so that nothing is found in a cache.
constexpr int kSets = 8;

double median_seconds(const Stream& stream, const std::function<void(int)>& submit) {
  const CudaTimer timer;
  std::vector<float> seconds;
  for (int i = 0; i < kRuns + 3; ++i) {
    const float each = timer.seconds(stream.cuda_queue(), [&] { submit(i); });
    if (i >= 3) seconds.push_back(each);
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRuns / 2, seconds.end());
  return static_cast<double>(seconds[kRuns / 2]);
}

const char* name_of(PackedForm form) {
  return form == PackedForm::bf16 ? "bf16" : form == PackedForm::fp8 ? "fp8" : "int4";
}

/// Bytes that are numbers in every form.
void fill_host(std::byte* to, std::int64_t bytes) {
  for (std::int64_t i = 0; i < bytes; i += 8) {
    std::uint64_t z = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 29U)) * 0xbf58476d1ce4e5b9ULL & 0x3737373737373737ULL;
    std::memcpy(to + i, &z, 8);
  }
}

void fetch(Stream& stream, HostMemory& host, PackedForm form, std::int32_t tokens) {
  const std::int64_t clusters = kPast / tokens;
  const ClusterPieces shape{nullptr, nullptr, nullptr, form, kHeads, kDim};
  const std::int64_t piece = shape.piece_bytes(tokens);
  const std::int64_t set = (clusters * kHeads * piece + 127) / 128 * 128;
  const HostBytes memory = host.take(static_cast<std::size_t>(kSets * set));
  fill_host(memory.get(), kSets * set);
  std::vector<std::int64_t> begins;
  std::vector<std::int32_t> lists(static_cast<std::size_t>(kHeads * clusters)), count(kHeads);
  for (std::int64_t c = 0; c < clusters; ++c) begins.push_back(c * kHeads * piece);
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t c = 0; c < clusters; ++c)
      if (random_number(5, static_cast<std::uint64_t>(head * clusters + c)) < 2 * 0.327F - 1)
        lists[static_cast<std::size_t>(head * clusters + count[static_cast<std::size_t>(head)]++)] =
            static_cast<std::int32_t>(c);
  const std::int64_t pieces = std::accumulate(count.begin(), count.end(), std::int64_t{0});
  const DeviceArray<std::int64_t> begins_there(stream, begins);
  const DeviceArray<std::int32_t> counts_there(
      stream, std::vector<std::int32_t>(static_cast<std::size_t>(clusters), tokens));
  Buffer lists_there(stream, lists.size() * 4), count_there(stream, kHeads * 4), lengths(stream, kHeads * 4),
      places(stream, lists.size() * 4);
  upload(stream, lists_there.data(), lists.data(), lists_there.bytes());
  upload(stream, count_there.data(), count.data(), count_there.bytes());
  const auto list_bytes = static_cast<std::size_t>(kHeads * kPast * kDim * 2);
  const Buffer keys(stream, list_bytes), values(stream, list_bytes);
  const ClusterSelection chosen{lists_there.as<std::int32_t>(), count_there.as<std::int32_t>(), nullptr};
  const FetchedLists to{
      keys.data(), values.data(), DType::bf16, kPast, lengths.as<std::int32_t>(), places.as<std::int32_t>()};
  const Buffer angles(stream, static_cast<std::size_t>(kPast * kDim / 2) * 4);
  fill_random(stream, dense(angles.data(), DType::f32, kPast, kDim / 2), 3, 1);
  std::vector<std::int32_t> first(static_cast<std::size_t>(clusters));
  for (std::int32_t c = 0; c < clusters; ++c) first[static_cast<std::size_t>(c)] = c * tokens;
  const DeviceArray<std::int32_t> first_there(stream, first);
  const ClusterTurn turn{angles.as<float>(), angles.as<float>(), first_there.data()};

  const auto from = [&](int i) {
    return ClusterPieces{
        memory.get() + i % kSets * set, begins_there.data(), counts_there.data(), form, kHeads, kDim};
  };
  const std::int64_t bytes = pieces * piece;
  place_clusters(stream, chosen, clusters, from(0), to);
  const double placed =
      median_seconds(stream, [&](int i) { place_clusters(stream, chosen, clusters, from(i), to); });
  const double fetched =
      median_seconds(stream, [&](int i) { fetch_clusters(stream, from(i), chosen, clusters, {}, to); });
  const double turned =
      median_seconds(stream, [&](int i) { fetch_clusters(stream, from(i), chosen, clusters, turn, to); });
  const Buffer raw(stream, static_cast<std::size_t>(set));
  const double plain = median_seconds(stream, [&](int i) {
    check_cuda(cudaMemcpyAsync(raw.data(), memory.get() + i % kSets * set,
                               static_cast<std::size_t>(std::min(bytes, set)), cudaMemcpyHostToDevice,
                               stream.cuda_queue().stream()),
               "copy");
  });
  std::vector<void*> tos;
  std::vector<const void*> froms(static_cast<std::size_t>(pieces));
  const std::vector<std::size_t> sizes(static_cast<std::size_t>(pieces), static_cast<std::size_t>(piece));
  for (std::int64_t p = 0; p < pieces; ++p) tos.push_back(raw.data() + p * piece);
  const double batch = median_seconds(stream, [&](int i) {
    std::size_t p = 0;
    for (std::int64_t head = 0; head < kHeads; ++head)
      for (std::int32_t at = 0; at < count[static_cast<std::size_t>(head)]; ++at)
        froms[p++] = memory.get() + i % kSets * set +
                     begins[static_cast<std::size_t>(lists[static_cast<std::size_t>(head * clusters + at)])] +
                     head * piece;
    cudaMemcpyAttributes attributes{};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    std::size_t which = 0;
    check_cuda(cudaMemcpyBatchAsync(tos.data(), froms.data(), sizes.data(), sizes.size(), &attributes, &which,
                                    1, stream.cuda_queue().stream()),
               "batch");
  });
  std::printf(R"({"fetch": "%s", "tokens_a_cluster": %d, "piece_bytes": %ld, "pieces": %ld, "bytes": %ld, )"
              R"("place_us": %.1f, "fetch_us": %.1f, "turned_us": %.1f, "copy_us": %.1f, "batch_us": %.1f, )"
              R"("fetch_gb_s": %.1f, "copy_gb_s": %.1f, "share_of_copy": %.3f, "batch_share": %.3f})"
              "\n",
              name_of(form), tokens, static_cast<long>(piece), static_cast<long>(pieces),
              static_cast<long>(bytes), placed * 1e6, fetched * 1e6, turned * 1e6, plain * 1e6, batch * 1e6,
              static_cast<double>(bytes) / fetched / 1e9,
              static_cast<double>(std::min(bytes, set)) / plain / 1e9, plain / fetched, plain / batch);
  std::fflush(stdout);
}

/// Clusters of `tokens` each of a block of some layers, whose tokens lie in no order, to the host.
void pack(Stream& stream, HostMemory& host, PackedForm form, std::int32_t tokens) {
  constexpr std::int64_t kLayers = 4, kBlockTokens = 2048, kRow = kHeads * kDim;
  const std::int64_t of_layer = kBlockTokens / tokens;
  const PackedShape shape{form, 1, 1, kDim, tokens};
  const std::int64_t piece = (kHeads * shape.bytes() + 127) / 128 * 128;
  const std::int64_t bytes = kLayers * of_layer * piece;
  const HostBytes memory = host.take(static_cast<std::size_t>(bytes));
  const Buffer cache(stream, static_cast<std::size_t>(kBlockTokens * kLayers * 2 * kRow) * 2);
  fill_random(stream, dense(cache.data(), DType::bf16, kBlockTokens * kLayers * 2, kRow), 6, 1);
  const KvLayers from{{cache.data(), DType::bf16, kBlockTokens, kLayers * 2 * kRow, kRow, 1, kHeads, kDim},
                      kLayers,
                      2 * kRow};
  std::vector<std::int32_t> slots;
  std::vector<ClusterToPack> clusters;
  for (std::int32_t layer = 0; layer < kLayers; ++layer)
    for (std::int64_t i = 0; i < kBlockTokens; ++i) {
      if (i % tokens == 0)
        clusters.push_back({static_cast<std::int64_t>(clusters.size()) * piece,
                            static_cast<std::int32_t>(slots.size()), tokens, layer});
      slots.push_back(static_cast<std::int32_t>(i * 77 % kBlockTokens));
    }
  const DeviceArray<std::int32_t> slots_there(stream, slots);
  const DeviceArray<ClusterToPack> clusters_there(stream, clusters);
  const double packed = median_seconds(stream, [&](int) {
    pack_clusters(stream, from,
                  {slots_there.data(), static_cast<std::int64_t>(slots.size()), clusters_there.data(),
                   static_cast<std::int64_t>(clusters.size())},
                  form, memory.get());
  });
  const double each = median_seconds(stream, [&](int) {
    for (const ClusterToPack& cluster : clusters)
      for (std::int64_t head = 0; head < kHeads; ++head) {
        KvLayers one = from;
        one.first.base = cache.as<bf16>() + cluster.layer * from.stride + head * kDim;
        one.first.kv_heads = one.count = 1;
        pack_kv(stream, one, {slots_there.data() + cluster.first, 0}, shape, 0, 0,
                memory.get() + cluster.begin + head * shape.bytes());
      }
  });
  const Buffer raw(stream, static_cast<std::size_t>(bytes));
  const double copied = median_seconds(stream, [&](int) {
    check_cuda(cudaMemcpyAsync(memory.get(), raw.data(), static_cast<std::size_t>(bytes),
                               cudaMemcpyDeviceToHost, stream.cuda_queue().stream()),
               "copy");
  });
  std::printf(R"({"pack": "%s", "tokens_a_cluster": %d, "clusters": %zu, "bytes": %ld, "pack_us": %.1f, )"
              R"("one_by_one_us": %.1f, "copy_us": %.1f, "pack_gb_s": %.1f, "copy_gb_s": %.1f, )"
              R"("share_of_copy": %.3f})"
              "\n",
              name_of(form), tokens, clusters.size(), static_cast<long>(bytes), packed * 1e6, each * 1e6,
              copied * 1e6, static_cast<double>(bytes) / packed / 1e9,
              static_cast<double>(bytes) / copied / 1e9, copied / packed);
  std::fflush(stdout);
}

/// `asked` queries over `paged` keys in pages and lists of `listed` keys; without lists by paged_attention,
/// too.
void attend(Stream& stream, std::int64_t sequences, std::int64_t asked, std::int64_t paged,
            std::int64_t listed) {
  constexpr std::int64_t kPage = 2 * kHeads * kPageTokens * kDim;
  const std::int64_t pages_each = (paged + kPageTokens - 1) / kPageTokens, pages = sequences * pages_each;
  const Buffer pool(stream, static_cast<std::size_t>(pages * kPage) * 2);
  fill_random(stream, dense(pool.data(), DType::bf16, pages, kPage), 1, 1);
  const std::int64_t room = std::max<std::int64_t>(listed, 1);
  const auto list_bytes = static_cast<std::size_t>(sequences * kHeads * room * kDim * 2);
  const Buffer keys(stream, list_bytes), values(stream, list_bytes);
  fill_random(stream, dense(keys.data(), DType::bf16, sequences * kHeads * room, kDim), 2, 1);
  fill_random(stream, dense(values.data(), DType::bf16, sequences * kHeads * room, kDim), 3, 1);
  const DeviceArray<std::int32_t> counts(
      stream, std::vector<std::int32_t>(static_cast<std::size_t>(sequences * kHeads),
                                        static_cast<std::int32_t>(listed)));
  std::vector<std::vector<std::int32_t>> slots, own;
  std::vector<AttentionSegment> segments;
  for (std::int64_t s = 0; s < sequences; ++s) {
    slots.emplace_back(static_cast<std::size_t>(paged));
    std::iota(slots.back().begin(), slots.back().end(),
              static_cast<std::int32_t>(s * pages_each * kPageTokens));
    own.emplace_back(static_cast<std::size_t>(asked));
    std::iota(own.back().begin(), own.back().end(), static_cast<std::int32_t>(paged - asked));
  }
  for (std::int64_t s = 0; s < sequences; ++s)
    segments.push_back({slots[static_cast<std::size_t>(s)], own[static_cast<std::size_t>(s)], s * asked});
  const KvLayer layer{pool.data(), DType::bf16, pages, kPage, kHeads * kPageTokens * kDim,
                      kPageTokens, kHeads,      kDim};
  const PagedPlan plan(stream, segments, layer, kHeads * kGroup);
  const std::int64_t rows = sequences * asked, cols = kHeads * kGroup * kDim;
  const Buffer q(stream, static_cast<std::size_t>(rows * cols) * 2), out(stream, q.bytes());
  fill_random(stream, dense(q.data(), DType::bf16, rows, cols), 4, 1);
  const KvLists lists{keys.data(), values.data(), counts.data(), sequences, room};
  // Several at once: what is left of a launch does not count.
  constexpr int kAtOnce = 10;
  const ConstMatrix queries = dense(static_cast<const void*>(q.data()), DType::bf16, rows, cols);
  const Matrix result = dense(out.data(), DType::bf16, rows, cols);
  const double took =
      median_seconds(stream,
                     [&](int) {
                       for (int i = 0; i < kAtOnce; ++i)
                         listed_attention(stream, queries, layer, plan, lists, 0.088F, result);
                     }) /
      kAtOnce;
  const double by_pages = median_seconds(stream,
                                         [&](int) {
                                           for (int i = 0; i < kAtOnce; ++i)
                                             paged_attention(stream, queries, layer, plan, 0.088F, result);
                                         }) /
                          kAtOnce;
  const std::int64_t bytes = sequences * (paged + listed) * kHeads * kDim * 4;
  const auto half = static_cast<std::size_t>(bytes / 2);
  const Buffer a(stream, half), b(stream, half);
  const double copied = median_seconds(stream,
                                       [&](int) {
                                         for (int i = 0; i < kAtOnce; ++i)
                                           copy(stream, b.data(), a.data(), half);
                                       }) /
                        kAtOnce;
  std::printf(R"({"attend": {"sequences": %ld, "asked": %ld, "paged": %ld, "listed": %ld}, "us": %.1f, )"
              R"("bytes": %ld, "floor_us": %.1f, "copy_us": %.1f, "paged_attention_of_the_pages_us": %.1f})"
              "\n",
              static_cast<long>(sequences), static_cast<long>(asked), static_cast<long>(paged),
              static_cast<long>(listed), took * 1e6, static_cast<long>(bytes),
              static_cast<double>(bytes) / 4.8e12 * 1e6, copied * 1e6, by_pages * 1e6);
  std::fflush(stdout);
}

int run() {
  Stream stream = Stream::cuda();
  HostMemory host(stream, std::uint64_t{4} << 30U);
  for (const PackedForm form : {PackedForm::fp8, PackedForm::int4, PackedForm::bf16})
    for (const std::int32_t tokens : {8, 16, 32, 64}) fetch(stream, host, form, tokens);
  for (const PackedForm form : {PackedForm::fp8, PackedForm::int4, PackedForm::bf16})
    for (const std::int32_t tokens : {1, 8, 64, 512}) pack(stream, host, form, tokens);
  for (const int multiprocessors : {2, 4, 6, 8, 12, 16}) {
    stream.take_multiprocessors(multiprocessors);
    std::printf(R"({"multiprocessors": %d} )", multiprocessors);
    fetch(stream, host, PackedForm::fp8, 32);
  }
  stream.take_multiprocessors(kMultiprocessors);
  attend(stream, 1, 10, 8192, 10715);
  attend(stream, 1, 10, 8192, 32768);
  attend(stream, 1, 10, 40960, 0);
  attend(stream, 1, 1, 8192, 10715);
  attend(stream, 1, 16, 8192, 10715);
  attend(stream, 8, 10, 8192, 10715);
  attend(stream, 8, 1, 40960, 0);
  return EXIT_SUCCESS;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_fetch_clusters_cuda: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
