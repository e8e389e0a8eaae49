// A frame of a streaming video model by ReSV, as V-Rex has it (section VI), on a GPU: 10 tokens through the
// layers of a model of Llama-3-8B's shape with 40 K tokens in the cache, of which the last 8 K are on the GPU
// and the rest, in FP8 and in clusters, in pinned memory of the host. What a layer needs of these is chosen
// and fetched while the layer before it runs. One JSON object; milliseconds are medians.
//
//   bench_resv_frame [SHARE [TOKENS_A_CLUSTER [LAYERS [MULTIPROCESSORS [together]]]]]      (0.327, 32, 32, 8)
//
// MULTIPROCESSORS are left to each fetch by all else; `together`: a fetch does not wait for the one before
// it.
//
//   resv       clusters are chosen for the next layer by its projections of this layer's input, on the GPU
//   given      the same sets, chosen before: what choosing costs
//   serial     chosen by the layer's own queries, fetched, then attended to: what overlap saves
//   all        everything is fetched
//   on_gpu     all 40 K on the GPU in bf16
//   fetch      the fetches alone, one after the other
//
// Weights, keys and values are random numbers, of which each has about the same attention: so shares are
// forced (a list ends when it has so many tokens), and cluster sizes are. Hashing the new keys is not in it
// (bench_clusters), nor are embeddings and the head.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/attention/listed_attention.h"
#include "kernels/device/buffer.h"
#include "kernels/device/host_buffer.h"
#include "kernels/device/mark.h"
#include "kernels/fetch_clusters/fetch_clusters.h"
#include "kernels/linear/gate.h"
#include "kernels/linear/linear.h"
#include "kernels/random/random.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/rope/rope.h"
#include "kernels/wicsum/wicsum.h"

namespace {

using namespace vigil::kernels;

constexpr std::int64_t kHidden = 4096, kInner = 14336, kQueryHeads = 32, kKvHeads = 8, kDim = 128;
constexpr std::int64_t kQueries = kQueryHeads * kDim, kKeys = kKvHeads * kDim;
constexpr std::int64_t kFrame = 10, kNear = 8192, kPast = 32768, kPageTokens = 64;
constexpr std::int64_t kPage = 2 * kKeys * kPageTokens;
/// Of an H200.
constexpr int kMultiprocessors = 132;
constexpr int kRuns = 15;

Matrix on_device(const Buffer& buffer, DType dtype, std::int64_t rows, std::int64_t cols) {
  return dense(buffer.data(), dtype, rows, cols);
}

/// Room that is filled with random numbers.
Buffer random_matrix(Stream& stream, DType dtype, std::int64_t rows, std::int64_t cols, std::uint64_t seed,
                     float scale) {
  Buffer made(stream, static_cast<std::size_t>(rows * cols) * size_of(dtype));
  fill_random(stream, on_device(made, dtype, rows, cols), seed, scale);
  return made;
}

struct Layer {
  Buffer norm, after_norm, attention, out, mlp, down;
};

/// A layer's chosen clusters, and where they are put.
struct Sets {
  Buffer clusters, numbers, places;
  ClusterSelection chosen;

  Sets(const Stream& stream, std::int64_t room)
      : clusters(stream, static_cast<std::size_t>(kKvHeads * room) * 4),
        numbers(stream, 3 * kKvHeads * 4),
        places(stream, clusters.bytes()) {
    auto* counts = numbers.as<std::int32_t>();
    chosen = {clusters.as<std::int32_t>(), counts, counts + kKvHeads};
  }
};

/// Room for what is fetched of a layer. Two take turns.
struct Room {
  Buffer keys, values;

  explicit Room(const Stream& stream)
      : keys(stream, static_cast<std::size_t>(kKvHeads * kPast * kDim) * 2), values(stream, keys.bytes()) {}
};

class Frame {
 public:
  Frame(std::int64_t tokens_a_cluster, std::int64_t layers, int multiprocessors, bool together)
      : stream_(Stream::cuda()),
        fetching_{stream_.beside(true), stream_.beside(true)},
        multiprocessors_(multiprocessors),
        together_(together),
        host_(stream_, std::uint64_t{16} << 30U) {
    // Half of the clusters are larger by a half, the others smaller.
    for (std::int64_t left = kPast; left > 0;) {
      const auto size = static_cast<std::int32_t>(
          std::min(left, counts_.size() % 2 == 0 ? tokens_a_cluster / 2 : tokens_a_cluster * 3 / 2));
      counts_.push_back(size);
      begins_.push_back(bytes_);
      bytes_ += (kKvHeads * piece().piece_bytes(size) + 127) / 128 * 128;
      left -= size;
    }
    clusters_ = static_cast<std::int64_t>(counts_.size());
    counts_there_.assign(stream_, counts_);
    begins_there_.assign(stream_, begins_);
    const auto clusters = static_cast<std::int32_t>(clusters_);
    clusters_there_.assign(stream_, {&clusters, 1});
    memory_ = host_.take(static_cast<std::size_t>(bytes_ * layers));
    fill(layers);
    make_layers(layers);
    for (int i = 0; i < 2; ++i) rooms_.emplace_back(stream_);
    for (std::int64_t i = 0; i < layers; ++i) sets_.emplace_back(stream_, clusters_);
    make_rows();
  }

  void run(double share) {
    choice_ = {WicsumScores::exp, WicsumRows::pooled, 0,
               std::max<std::int64_t>(1, std::llround(share * kPast))};
    for (const Stream& stream : fetching_) stream.take_multiprocessors(multiprocessors_);
    stream_.take_multiprocessors(kMultiprocessors - (together_ ? 2 : 1) * multiprocessors_);
    const double resv = milliseconds([&] { pipelined(true); });
    std::int64_t fetched = 0;
    const std::int64_t tokens = chosen_tokens(fetched);
    const double given = milliseconds([&] { pipelined(false); });
    const double fetches = milliseconds([&] {
      for (std::int64_t l = 0; l < layers(); ++l)
        fetch_clusters(fetching_[0], pieces(l), sets_[at(l)].chosen, clusters_, {}, lists_of(l));
      follow(stream_, fetching_[0]);
    });
    const double serial = milliseconds([&] { one_after_the_other(); });
    const double near_beside = milliseconds([&] { frame([](std::int64_t) {}, false); });
    stream_.take_multiprocessors(kMultiprocessors);
    const double near_only = milliseconds([&] { frame([](std::int64_t) {}, false); });
    const double on_gpu = everything_on_gpu();
    stream_.take_multiprocessors(kMultiprocessors - (together_ ? 2 : 1) * multiprocessors_);
    choice_.tokens = 0;
    choice_.ratio = 1;
    const double all = milliseconds([&] { pipelined(true); });
    const double copied = copy_rate();
    const double layers_count = static_cast<double>(layers());
    std::printf(
        R"({"shape": "Llama-3-8B", "layers": %ld, "frame": %ld, "near": %ld, "past": %ld, "clusters": %ld, )"
        R"("tokens_a_cluster": %.1f, "share": %.4f, "bytes": %ld, "floor_ms_at_55_gb_s": %.2f, "copy_gb_s": %.1f, )"
        R"("floor_ms_at_the_copy": %.2f, "resv_ms": %.2f, "given_ms": %.2f, "over_given": %.3f, "serial_ms": %.2f, )"
        R"("all_ms": %.2f, "on_gpu_ms": %.2f, "near_only_ms": %.2f, "near_beside_ms": %.2f, "fetch_ms": %.2f, )"
        R"("fetch_gb_s": %.1f, "multiprocessors": %d, "together": %s})"
        "\n",
        static_cast<long>(layers()), static_cast<long>(kFrame), static_cast<long>(kNear),
        static_cast<long>(kPast), static_cast<long>(clusters_),
        static_cast<double>(kPast) / static_cast<double>(clusters_),
        static_cast<double>(tokens) / static_cast<double>(kKvHeads * kPast) / layers_count,
        static_cast<long>(fetched), static_cast<double>(fetched) / 55e6, copied / 1e9,
        static_cast<double>(fetched) / copied * 1e3, resv, given, resv / given - 1, serial, all, on_gpu,
        near_only, near_beside, fetches, static_cast<double>(fetched) / fetches / 1e6, multiprocessors_,
        together_ ? "true" : "false");
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t layers() const { return static_cast<std::int64_t>(layers_.size()); }
  static ClusterPieces piece() { return {nullptr, nullptr, nullptr, PackedForm::fp8, kKvHeads, kDim}; }
  ClusterPieces pieces(std::int64_t l) const {
    return {memory_.get() + l * bytes_,
            begins_there_.data(),
            counts_there_.data(),
            PackedForm::fp8,
            kKvHeads,
            kDim};
  }
  /// Scales of 2^-6, and codes that are numbers.
  void fill(std::int64_t layers) {
    constexpr std::uint16_t kSixtyFourth = 0x3c80;
    for (std::size_t c = 0; c < counts_.size(); ++c)
      for (std::int64_t part = 0; part < 2 * kKvHeads; ++part) {
        const PackedShape shape{PackedForm::fp8, 1, 1, kDim, counts_[c]};
        std::byte* to = memory_.get() + begins_[c] + part * shape.segment_bytes();
        for (std::int64_t b = 0; b < shape.blocks(); ++b) {
          std::byte* block = to + shape.offset(0, false, 0, b);
          const std::int64_t tokens = shape.tokens_of_block(b);
          for (std::int64_t i = 0; i < tokens; ++i) std::memcpy(block + 2 * i, &kSixtyFourth, 2);
          for (std::int64_t i = 0; i < tokens * kDim; i += 8) {
            std::uint64_t z = (c * 64 + static_cast<std::uint64_t>(part)) * 0x9e3779b97f4a7c15ULL +
                              static_cast<std::uint64_t>(i) * 0xbf58476d1ce4e5b9ULL;
            z = (z ^ (z >> 31U)) * 0x94d049bb133111ebULL & 0xb7b7b7b7b7b7b7b7ULL;
            std::memcpy(block + shape.head_bytes(tokens) + i, &z, 8);
          }
        }
      }
    for (std::int64_t l = 1; l < layers; ++l)
      std::memcpy(memory_.get() + l * bytes_, memory_.get(), static_cast<std::size_t>(bytes_));
  }

  void make_layers(std::int64_t layers) {
    const std::vector<float> ones(kHidden, 1.0F);
    const float in = 1 / std::sqrt(static_cast<float>(kHidden)),
                down = 1 / std::sqrt(static_cast<float>(kInner));
    near_pages_ = (kNear + kPageTokens - 1) / kPageTokens;
    for (std::int64_t l = 0; l < layers; ++l) {
      const auto seed = static_cast<std::uint64_t>(10 * l);
      Layer layer;
      for (Buffer* norm : {&layer.norm, &layer.after_norm}) {
        *norm = Buffer(stream_, kHidden * 4);
        upload(stream_, norm->data(), ones.data(), kHidden * 4);
      }
      layer.attention = random_matrix(stream_, DType::bf16, kQueries + 2 * kKeys, kHidden, seed, in);
      layer.out = random_matrix(stream_, DType::bf16, kHidden, kQueries, seed + 1, in);
      layer.mlp = random_matrix(stream_, DType::bf16, 2 * kInner, kHidden, seed + 2, in);
      layer.down = random_matrix(stream_, DType::bf16, kHidden, kInner, seed + 3, down);
      layers_.push_back(std::move(layer));
      tables_.push_back(random_matrix(stream_, DType::f32, clusters_, kKeys, seed + 4, 30));
      near_.push_back(random_matrix(stream_, DType::bf16, near_pages_, kPage, seed + 5, 1));
    }
  }

  void make_rows() {
    plan(near_pages_, plan_);
    start_ = random_matrix(stream_, DType::f32, kFrame, kHidden, 7, 1);
    hidden_ = Buffer(stream_, kFrame * kHidden * 4);
    normed_ = Buffer(stream_, kFrame * kHidden * 2);
    ahead_ = Buffer(stream_, kFrame * kHidden * 2);
    projected_ = Buffer(stream_, kFrame * (kQueries + 2 * kKeys) * 2);
    asked_ = Buffer(stream_, kFrame * kQueries * 2);
    attended_ = Buffer(stream_, kFrame * kQueries * 2);
    inner_ = Buffer(stream_, kFrame * 2 * kInner * 2);
    const std::vector<float> cos(kFrame * kDim / 2, 0.8F), sin(kFrame * kDim / 2, 0.6F);
    cos_.assign(stream_, cos);
    sin_.assign(stream_, sin);
  }

  /// The last tokens of so many pages ask.
  void plan(std::int64_t pages, PagedPlan& to) {
    slots_of_near_.resize(at(pages * kPageTokens));
    std::iota(slots_of_near_.begin(), slots_of_near_.end(), 0);
    own_.resize(kFrame);
    std::iota(own_.begin(), own_.end(), static_cast<std::int32_t>(pages * kPageTokens - kFrame));
    const AttentionSegment segment{slots_of_near_, own_, 0};
    to.assign(stream_, {&segment, 1}, cache(near_.front(), pages), kQueryHeads);
    stream_.synchronize();
  }
  static KvLayer cache(const Buffer& memory, std::int64_t pages) {
    return {memory.data(), DType::bf16, pages, kPage, kKeys * kPageTokens, kPageTokens, kKvHeads, kDim};
  }
  Matrix hidden() const { return on_device(hidden_, DType::f32, kFrame, kHidden); }
  Matrix normed() const { return on_device(normed_, DType::bf16, kFrame, kHidden); }
  Matrix projected() const { return on_device(projected_, DType::bf16, kFrame, kQueries + 2 * kKeys); }
  static ConstMatrix weight(const Buffer& of, std::int64_t rows, std::int64_t cols) {
    return dense(static_cast<const void*>(of.data()), DType::bf16, rows, cols);
  }
  FetchedLists lists_of(std::int64_t l) const {
    const Room& room = rooms_[at(l % 2)];
    const Sets& sets = sets_[at(l)];
    return {room.keys.data(),
            room.values.data(),
            DType::bf16,
            kPast,
            sets.numbers.as<std::int32_t>() + 2 * kKvHeads,
            sets.places.as<std::int32_t>()};
  }

  /// The clusters of layer l for queries that its projections make of the hidden states of a layer before.
  void choose_ahead(std::int64_t l) {
    const Matrix queries = on_device(asked_, DType::bf16, kFrame, kQueries);
    const Matrix ahead = on_device(ahead_, DType::bf16, kFrame, kHidden);
    rms_norm(stream_, hidden(), layers_[at(l)].norm.as<float>(), 1e-5F, ahead);
    linear(stream_, ahead, weight(layers_[at(l)].attention, kQueries, kHidden), queries);
    rope(stream_, queries, kDim, cos_.data(), sin_.data());
    choose(l, queries);
  }
  void choose(std::int64_t l, ConstMatrix queries) {
    select_clusters(
        stream_, queries,
        {tables_[at(l)].as<float>(), counts_there_.data(), clusters_there_.data(), clusters_, kKvHeads, kDim},
        kScale, choice_, sets_[at(l)].chosen);
    place_clusters(stream_, sets_[at(l)].chosen, clusters_, pieces(l), lists_of(l));
  }
  /// Layer l's fetch, after what was submitted so far and after the fetch before it.
  void fetch(std::int64_t l) {
    Stream& on = fetching_[at(l % 2)];
    follow(on, stream_);
    if (!together_) follow(on, fetching_[at((l + 1) % 2)]);
    fetch_clusters(on, pieces(l), sets_[at(l)].chosen, clusters_, {}, lists_of(l));
  }

  /// All layers. `before(l)`: when layer l's keys are stored; `listed`: whether layers attend to what was
  /// fetched.
  void frame(const std::function<void(std::int64_t)>& before, bool listed) {
    copy(stream_, hidden_.data(), start_.data(), hidden_.bytes());
    rms_norm(stream_, hidden(), layers_.front().norm.as<float>(), 1e-5F, normed());
    for (std::int64_t l = 0; l < layers(); ++l) {
      const Layer& layer = layers_[at(l)];
      linear(stream_, normed(), weight(layer.attention, kQueries + 2 * kKeys, kHidden), projected());
      const Matrix q = projected().columns(0, kQueries);
      const KvLayer kv = cache(near_[at(l)], near_pages_);
      store_rotated(stream_, q, projected().columns(kQueries, kKeys),
                    projected().columns(kQueries + kKeys, kKeys), cos_.data(), sin_.data(), plan_, kv);
      before(l);
      const Matrix attended = on_device(attended_, DType::bf16, kFrame, kQueries);
      if (listed) {
        follow(stream_, fetching_[at(l % 2)]);
        const FetchedLists lists = lists_of(l);
        listed_attention(stream_, q, kv, plan_, {lists.keys, lists.values, lists.counts, 1, lists.capacity},
                         kScale, attended);
      } else {
        paged_attention(stream_, q, kv, plan_, kScale, attended);
      }
      linear(stream_, attended, weight(layer.out, kHidden, kQueries), hidden(), {.accumulate = true});
      rms_norm(stream_, hidden(), layer.after_norm.as<float>(), 1e-5F, normed());
      const Matrix inner = on_device(inner_, DType::bf16, kFrame, 2 * kInner);
      gated_linear(stream_, normed(), weight(layer.mlp, 2 * kInner, kHidden), {}, Activation::silu, inner);
      linear(stream_, inner.columns(0, kInner), weight(layer.down, kHidden, kInner), hidden(),
             {.accumulate = true});
      if (l + 1 < layers()) rms_norm(stream_, hidden(), layers_[at(l + 1)].norm.as<float>(), 1e-5F, normed());
    }
  }

  /// What layer l + 1 needs is chosen and begins to come while layer l runs: there is room since layer l - 1.
  void pipelined(bool chooses) {
    frame(
        [&](std::int64_t l) {
          if (l == 0) {
            if (chooses) choose(0, projected().columns(0, kQueries));
            fetch(0);
          }
          if (l + 1 == layers()) return;
          if (chooses) choose_ahead(l + 1);
          fetch(l + 1);
        },
        true);
  }

  void one_after_the_other() {
    frame(
        [&](std::int64_t l) {
          choose(l, projected().columns(0, kQueries));
          fetch(l);
        },
        true);
  }

  double everything_on_gpu() {
    std::vector<Buffer> few;
    few.swap(near_);
    const std::int64_t pages = near_pages_;
    near_pages_ = (kNear + kPast) / kPageTokens;
    for (std::int64_t l = 0; l < layers(); ++l)
      near_.push_back(
          random_matrix(stream_, DType::bf16, near_pages_, kPage, static_cast<std::uint64_t>(l), 1));
    plan(near_pages_, plan_);
    const double took = milliseconds([&] { frame([](std::int64_t) {}, false); });
    near_.swap(few);
    near_pages_ = pages;
    plan(near_pages_, plan_);
    return took;
  }

  double milliseconds(const std::function<void()>& submit) {
    std::vector<double> took;
    for (int run = 0; run < kRuns + 2; ++run) {
      for (const Stream& stream : fetching_) stream.synchronize();
      stream_.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      submit();
      stream_.synchronize();
      if (run >= 2)
        took.push_back(
            std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
    }
    std::nth_element(took.begin(), took.begin() + kRuns / 2, took.end());
    return took[kRuns / 2];
  }

  /// Bytes a second of one copy from the host.
  double copy_rate() {
    const auto bytes = static_cast<std::size_t>(bytes_ * std::min<std::int64_t>(layers(), 8));
    const Buffer to(stream_, bytes);
    return static_cast<double>(bytes) /
           milliseconds([&] { copy(stream_, to.data(), memory_.get(), bytes); }) * 1e3;
  }

  /// Of all layers and KV heads; `bytes`: what their pieces have.
  std::int64_t chosen_tokens(std::int64_t& bytes) {
    std::int64_t tokens = 0;
    std::vector<std::int32_t> lists(at(kKvHeads * clusters_)), count(kKvHeads);
    for (const Sets& sets : sets_) {
      download(stream_, lists.data(), sets.chosen.clusters, lists.size() * 4);
      download(stream_, count.data(), sets.chosen.count, count.size() * 4);
      for (std::int64_t head = 0; head < kKvHeads; ++head)
        for (std::int64_t i = 0; i < count[at(head)]; ++i) {
          const std::int32_t size = counts_[at(lists[at(head * clusters_ + i)])];
          tokens += size;
          bytes += piece().piece_bytes(size);
        }
    }
    return tokens;
  }

  static constexpr float kScale = 0.0883883F;
  Stream stream_;
  /// Fetches of even and odd layers: who waits for one does not wait for the next.
  std::array<Stream, 2> fetching_;
  int multiprocessors_;
  bool together_;
  HostMemory host_;
  HostBytes memory_;
  std::vector<std::int32_t> counts_;
  std::vector<std::int64_t> begins_;
  std::int64_t bytes_ = 0, clusters_ = 0, near_pages_ = 0;
  DeviceArray<std::int32_t> counts_there_, clusters_there_;
  DeviceArray<std::int64_t> begins_there_;
  std::vector<Layer> layers_;
  std::vector<Buffer> tables_, near_;
  std::vector<Sets> sets_;
  std::vector<Room> rooms_;
  std::vector<std::int32_t> slots_of_near_, own_;
  PagedPlan plan_;
  WicsumChoice choice_;
  Buffer start_, hidden_, normed_, ahead_, projected_, asked_, attended_, inner_;
  DeviceArray<float> cos_, sin_;
};

double number(const char* text, const char* what) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value > 0))
    throw std::invalid_argument(std::string(what) + ": " + text);
  return value;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const double share = argc > 1 ? number(argv[1], "no share") : 0.327;
    const auto tokens = static_cast<std::int64_t>(argc > 2 ? number(argv[2], "no tokens a cluster") : 32);
    const auto layers = static_cast<std::int64_t>(argc > 3 ? number(argv[3], "no layers") : 32);
    const int multiprocessors = static_cast<int>(argc > 4 ? number(argv[4], "no multiprocessors") : 8);
    Frame(tokens, layers, multiprocessors, argc > 5).run(share);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_resv_frame: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
