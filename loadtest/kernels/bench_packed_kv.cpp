// What packing keys and values takes, and unpacking them with and without a turn, beside a copy that moves as
// many bytes in as many calls. At the shape of the published 7B model in bf16: pieces of 256 tokens, 200 of
// them, one after the other and in one call; on a CPU four. A line of JSON each; medians.
//
//   bench_packed_kv [cuda]
//
// `bytes`: read and written; `share`: the time of the copy by that of the operation.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/device/buffer.h"
#include "kernels/packed_kv/packed_kv.h"
#include "kernels/random/random.h"
#include "kernels/rope/rope.h"

namespace {

using namespace vigil::kernels;

constexpr std::int64_t kLayers = 28, kHeads = 4, kHead = 128, kPiece = 256, kPageTokens = 64;
constexpr std::int64_t kPageLayer = 2 * kHeads * kPageTokens * kHead;
/// Bytes of a token in the cache.
constexpr std::int64_t kToken = kLayers * 2 * kHeads * kHead * 2;

class Bench {
 public:
  Bench(const Stream& on, std::int64_t pieces)
      : stream_(on),
        tokens_(pieces * kPiece),
        cache_(stream_, static_cast<std::size_t>(tokens_ * kToken)),
        other_(stream_, cache_.bytes()),
        packed_(stream_, cache_.bytes()) {
    fill_random(stream_, dense(cache_.data(), DType::bf16, tokens_, kToken / 2), 1, 4);
    // Pages in no order, as a cache that has run for long has them.
    std::vector<std::int32_t> slots(static_cast<std::size_t>(tokens_));
    const std::int64_t pages = tokens_ / kPageTokens;
    for (std::int64_t i = 0; i < tokens_; ++i)
      slots[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(i / kPageTokens * 7 % pages * kPageTokens + i % kPageTokens);
    slots_.assign(stream_, slots);
    std::vector<float> angles(static_cast<std::size_t>(tokens_ * kHead / 2), std::sqrt(0.5F));
    angles_.assign(stream_, angles);
  }

  void run() {
    for (const std::int64_t piece : {kPiece, tokens_})
      for (const PackedForm form : {PackedForm::bf16, PackedForm::fp8, PackedForm::int4}) {
        const PackedShape shape{form, kLayers, kHeads, kHead, piece};
        const std::int64_t bytes = (tokens_ * kToken + tokens_ / piece * shape.bytes());
        const double copied = seconds(piece, [&](std::int64_t first) {
          const auto each = static_cast<std::size_t>(bytes / (tokens_ / piece) / 2);
          const std::size_t at = static_cast<std::size_t>(first * kToken) % (cache_.bytes() - each + 1);
          copy(stream_, other_.data() + at, cache_.data() + at, each);
        });
        const auto at = [&](std::int64_t first) { return packed_.data() + first / piece * shape.bytes(); };
        const auto tell = [&](const char* what, double took) {
          std::printf(
              R"({"what": "%s", "form": "%s", "tokens_a_call": %lld, "calls": %lld, "bytes": %lld, "seconds": %.3e, "bytes_a_second": %.3e, "share": %.3f})"
              "\n",
              what, name(form), static_cast<long long>(piece), static_cast<long long>(tokens_ / piece),
              static_cast<long long>(bytes), took, static_cast<double>(bytes) / took, copied / took);
          std::fflush(stdout);
        };
        tell("pack", seconds(piece, [&](std::int64_t first) {
               pack_kv(stream_, layers(cache_), {slots_.data() + first, 0}, shape, 0, 0, at(first));
             }));
        const auto back = [&](const float* angles) {
          return seconds(piece, [&](std::int64_t first) {
            const float* its = angles == nullptr ? nullptr : angles + first * kHead / 2;
            unpack_kv(stream_, at(first), shape, {0, 0, 0, piece}, its, its, {slots_.data() + first, 0},
                      layers(other_));
          });
        };
        tell("unpack", back(nullptr));
        tell("unpack, keys turned", back(angles_.data()));
      }
  }

 private:
  static const char* name(PackedForm form) {
    return form == PackedForm::bf16 ? "bf16" : form == PackedForm::fp8 ? "fp8" : "int4";
  }
  KvLayers layers(const Buffer& memory) const {
    return {{memory.data(), DType::bf16, tokens_ / kPageTokens, kLayers * kPageLayer, kPageLayer / 2,
             kPageTokens, kHeads, kHead},
            kLayers,
            kPageLayer};
  }
  /// The median of what all pieces take together.
  double seconds(std::int64_t piece, const std::function<void(std::int64_t)>& submit) const {
    std::array<double, 9> took{};
    for (int i = -2; i < static_cast<int>(took.size()); ++i) {
      stream_.synchronize();
      const auto begin = std::chrono::steady_clock::now();
      for (std::int64_t first = 0; first < tokens_; first += piece) submit(first);
      stream_.synchronize();
      if (i >= 0)
        took[static_cast<std::size_t>(i)] =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    std::nth_element(took.begin(), took.begin() + took.size() / 2, took.end());
    return took[took.size() / 2];
  }

  mutable Stream stream_;
  std::int64_t tokens_;
  Buffer cache_, other_, packed_;
  DeviceArray<std::int32_t> slots_;
  DeviceArray<float> angles_;
};

}  // namespace

int main(int argc, char** argv) {
  const bool gpu = argc == 2 && std::string_view(argv[1]) == "cuda";
  if (argc > 1 && !gpu) {
    std::fputs("usage: bench_packed_kv [cuda]\n", stderr);
    return 2;
  }
  try {
    if (gpu) {
      Bench(Stream::cuda(), 200).run();
    } else {
      Bench(Stream::cpu(1), 4).run();
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_packed_kv: %s\n", error.what());
    return 1;
  }
}
