// What a camera's thread takes for what is chosen of a temporal patch: each policy, and what stands out of
// it, over the same pictures: a street with noise in which a box moves. A JSON object a line; medians of
// patches.
//
//   bench_choice [SIZE] [PATCHES]      (SIZE: of a picture's edge, in pixels, a multiple of 28; 448)
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "engine/prune/pruning_policy.h"
#include "engine/prune/salience.h"

namespace {

using namespace vigil;

/// Frames that the patches take in turn, so that they are in no cache by chance.
constexpr std::size_t kFrames = 32;
constexpr int kBox = 60;

std::vector<std::vector<std::uint8_t>> street(int size) {
  std::mt19937 random(1);
  const auto bytes = 3 * static_cast<std::size_t>(size) * static_cast<std::size_t>(size);
  std::vector<std::uint8_t> ground(bytes);
  for (std::size_t i = 0; i < bytes; ++i) ground[i] = static_cast<std::uint8_t>(60 + i / 3 / 20 * 37 % 120);
  std::vector<std::vector<std::uint8_t>> frames(kFrames, ground);
  for (std::size_t frame = 0; frame < kFrames; ++frame) {
    const std::size_t left = frame * static_cast<std::size_t>(size - kBox) / kFrames;
    for (std::size_t y = 0; y < kBox; ++y)
      std::fill_n(frames[frame].begin() +
                      static_cast<std::ptrdiff_t>(3 * (y * static_cast<std::size_t>(size) + left)),
                  3 * kBox, std::uint8_t{230});
    for (std::uint8_t& value : frames[frame]) value = static_cast<std::uint8_t>(value + random() % 7);
  }
  return frames;
}

template <class Look>
double median_us(const std::vector<std::vector<std::uint8_t>>& frames, int size, int patches, Look&& look) {
  std::vector<double> times;
  for (int patch = 0; patch < patches; ++patch) {
    std::vector<prune::SampledPicture> pictures;
    for (const int i : {0, 1})
      pictures.push_back(
          {{frames[static_cast<std::size_t>(2 * patch + i) % kFrames].data(), size, size}, {}});
    const auto begin = std::chrono::steady_clock::now();
    look(static_cast<double>(patch), pictures);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    times.push_back(time.count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

}  // namespace

int main(int count, char** words) {
  const int size = count > 1 ? std::atoi(words[1]) : 448;
  const int patches = count > 2 ? std::atoi(words[2]) : 400;
  if (size < 112 || size % 28 != 0 || patches < 1) {
    std::fprintf(stderr, "bench_choice [SIZE] [PATCHES]: an edge of at least 112 pixels, a multiple of 28\n");
    return 2;
  }
  const auto frames = street(size);
  for (const std::string_view name : prune::kPruningPolicies) {
    if (name == "none" || name == "codecsight") continue;
    const auto policy = prune::make_pruning(name, {});
    const double us = median_us(frames, size, patches, [&](double seconds, const auto& pictures) {
      policy->choose(seconds, pictures);
    });
    std::printf(R"({"what": "%s", "size": %d, "us": %.1f})"
                "\n",
                std::string(name).c_str(), size, us);
  }
  prune::Salience salience({});
  const double us = median_us(frames, size, patches, [&](double seconds, const auto& pictures) {
    salience.look(seconds, 1, pictures);
  });
  std::printf(R"({"what": "salience", "size": %d, "us": %.1f})"
              "\n",
              size, us);
  return 0;
}
