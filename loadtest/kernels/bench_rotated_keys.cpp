// What turning keys in pages costs (equation 5 of CodecSight), and how far bf16 keys drift that are turned
// with each window, beside keys that stay at their absolute positions. At the shape of the published 7B
// model; a line of JSON a measurement, on one thread.
//
//   bench_rotated_keys
//
// `key`: the root mean square of the difference from the exact key, in f64, over the exact key's; `score`: of
// the products with queries at the distances that a window has, over theirs.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/device/buffer.h"
#include "kernels/paged_keys/paged_keys.h"
#include "kernels/rope/rope.h"

namespace {

using namespace vigil::kernels;

constexpr std::int64_t kHead = 128, kPairs = kHead / 2, kKvHeads = 4, kLayers = 28, kTokens = 1024;
/// Positions between two windows: 2 s.
constexpr std::int32_t kStride = 4;

std::vector<RopeFrequency> frequencies() {
  constexpr std::array<int, 3> kSections{16, 24, 24};
  std::vector<RopeFrequency> all;
  for (std::int32_t axis = 0; axis < 3; ++axis)
    for (int i = 0; i < kSections[static_cast<std::size_t>(axis)]; ++i)
      all.push_back({1.0F / std::pow(1e6F, static_cast<float>(2 * all.size()) / 128.0F), axis});
  return all;
}

/// x turned by an exact angle a pair.
std::vector<double> exact(const float* x, const RopePosition& position,
                          const std::vector<RopeFrequency>& turns) {
  std::vector<double> result(kHead);
  for (std::size_t j = 0; j < kPairs; ++j) {
    const auto angle = static_cast<double>(position[static_cast<std::size_t>(turns[j].axis)]) *
                       static_cast<double>(turns[j].inverse);
    const double a = x[j], b = x[j + kPairs];
    result[j] = a * std::cos(angle) - b * std::sin(angle);
    result[j + kPairs] = b * std::cos(angle) + a * std::sin(angle);
  }
  return result;
}

struct Keys {
  Stream stream = Stream::cpu(1);
  std::vector<RopeFrequency> turns = frequencies();
  std::vector<float> raw, cos, sin;
  std::vector<bf16> pages;
  std::vector<std::int32_t> slots;
  KvLayer layer;

  Keys() : raw(kTokens * kHead), cos(kTokens * kPairs), sin(cos), pages(raw.size()), slots(kTokens) {
    std::uint32_t state = 1;
    for (float& value : raw) {
      state = state * 1664525U + 1013904223U;
      value = static_cast<float>(state >> 8U) * 0x1p-23F - 1.0F;
    }
    std::iota(slots.begin(), slots.end(), 0);
    layer = {pages.data(), DType::bf16, 1, 2 * kTokens * kHead, kTokens * kHead, kTokens, 1, kHead};
  }
  void angles(std::int32_t t) {
    const std::vector<RopePosition> positions(kTokens, {t, 0, 0});
    rope_angles(stream, positions.data(), kTokens, turns.data(), kPairs, RopeAngles::wide, cos.data(),
                sin.data());
  }
  /// The keys as a pass leaves them at this time; the other axes are those of a patch.
  RopePosition place(std::int64_t token, std::int32_t t) const {
    return {t, static_cast<std::int32_t>(token % 32), static_cast<std::int32_t>(token / 32)};
  }
  void compute(std::int32_t t) {
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const auto key = exact(raw.data() + i * kHead, place(i, t), turns);
      for (std::int64_t j = 0; j < kHead; ++j)
        pages[static_cast<std::size_t>(i * kHead + j)] =
            to_bf16(static_cast<float>(key[static_cast<std::size_t>(j)]));
    }
  }
  /// How far they are from exact ones at this time.
  void tell(const std::string& what, int times, std::int32_t t) const {
    double off = 0, all = 0, score_off = 0, scores = 0;
    for (std::int64_t i = 0; i < kTokens; ++i) {
      const auto key = exact(raw.data() + i * kHead, place(i, t), turns);
      // Of another token, some positions later.
      const auto query = exact(raw.data() + (i + 7) % kTokens * kHead,
                               place(i, t + static_cast<std::int32_t>(i % 20)), turns);
      double score = 0, exact_score = 0;
      for (std::size_t j = 0; j < kHead; ++j) {
        const double found = to_float(pages[static_cast<std::size_t>(i * kHead) + j]);
        off += (found - key[j]) * (found - key[j]);
        all += key[j] * key[j];
        score += found * query[j];
        exact_score += key[j] * query[j];
      }
      score_off += (score - exact_score) * (score - exact_score);
      scores += exact_score * exact_score;
    }
    std::printf(R"({"keys": "%s", "turns": %d, "key": %.2e, "score": %.2e})"
                "\n",
                what.c_str(), times, std::sqrt(off / all), std::sqrt(score_off / scores));
  }
};

/// The median of some runs, by token.
template <typename Run>
void time(const std::string& what, const Run& run) {
  std::array<double, 9> took{};
  for (double& each : took) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    each =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count() / kTokens;
  }
  std::nth_element(took.begin(), took.begin() + 4, took.end());
  std::printf(R"({"what": "%s", "ns_per_token": %.1f})"
              "\n",
              what.c_str(), took[4]);
}

void drift() {
  constexpr std::int32_t kFar = 100'000'000;
  Keys keys;
  keys.compute(kFar);
  keys.tell("absolute, computed where they are", 0, kFar);
  keys.angles(-kFar);
  rotate_keys(keys.stream, keys.slots.data(), kTokens, keys.cos.data(), keys.sin.data(), keys.layer);
  keys.tell("turned to the origin at once", 1, 0);

  std::int32_t t = 4096 * kStride;
  keys.compute(t);
  keys.angles(-kStride);
  for (int times = 1; times <= 4096; ++times) {
    rotate_keys(keys.stream, keys.slots.data(), kTokens, keys.cos.data(), keys.sin.data(), keys.layer);
    t -= kStride;
    if ((times & (times - 1)) == 0) keys.tell("turned with each window", times, t);
  }
}

void cost() {
  Stream stream = Stream::cpu(1);
  const std::vector<RopeFrequency> turns = frequencies();
  std::vector<RopePosition> near, far;
  for (std::int32_t i = 0; i < kTokens; ++i) {
    near.push_back({i / 16, i % 4, i % 16});
    far.push_back({100'000'000 + i / 16, i % 4, i % 16});
  }
  std::vector<float> cos(kTokens * kPairs), sin(cos);
  const auto angles = [&](const std::vector<RopePosition>& positions, RopeAngles precision) {
    rope_angles(stream, positions.data(), kTokens, turns.data(), kPairs, precision, cos.data(), sin.data());
  };
  time("angles of a pass, f32, near", [&] { angles(near, RopeAngles::single); });
  time("angles of a pass, f32, far", [&] { angles(far, RopeAngles::single); });
  time("angles of a pass, f64, near", [&] { angles(near, RopeAngles::wide); });
  time("angles of a pass, f64, far", [&] { angles(far, RopeAngles::wide); });

  constexpr std::int64_t kPageTokens = 64, kPageLayer = 2 * kKvHeads * kPageTokens * kHead;
  const Buffer memory(stream, static_cast<std::size_t>(kTokens / kPageTokens * kLayers * kPageLayer) * 2);
  std::fill_n(memory.as<bf16>(), memory.bytes() / 2, to_bf16(0.5F));
  std::vector<std::int32_t> slots(kTokens);
  std::iota(slots.begin(), slots.end(), 0);
  time("turning keys of 28 layers", [&] {
    for (std::int64_t layer = 0; layer < kLayers; ++layer)
      rotate_keys(stream, slots.data(), kTokens, cos.data(), sin.data(),
                  {memory.as<bf16>() + layer * kPageLayer, DType::bf16, kTokens / kPageTokens,
                   kLayers * kPageLayer, kPageLayer / 2, kPageTokens, kKvHeads, kHead});
  });
}

}  // namespace

int main() {
  drift();
  cost();
}
