#include "engine/speculate/streams.h"

#include <array>
#include <cstddef>
#include <string_view>

#include "base/fnv1a.h"

namespace vigil::speculate {
namespace {

std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

}  // namespace

Uniform streams_of(std::uint64_t seed) {
  constexpr std::uint64_t kGamma = 0x9e3779b97f4a7c15U;
  constexpr std::array<std::string_view, 3> kNames = {"draft", "accept", "resample"};
  std::array<std::uint64_t, kNames.size()> seeds{};
  // Mixed twice, so that neither two seeds nor two names give sequences that are shifted against each other.
  for (std::size_t i = 0; i < kNames.size(); ++i)
    seeds[i] = mixed(mixed(seed + kGamma) ^ base::fnv1a(kNames[i]));
  return [seeds](Stream stream, std::uint64_t step) {
    const std::uint64_t z = mixed(seeds[static_cast<std::size_t>(stream)] + (step + 1) * kGamma);
    return static_cast<double>(z >> 11U) * 0x1p-53;
  };
}

std::int32_t choose(std::span<const model::Likelihood> choices, double point) {
  std::int32_t id = choices.front().id;
  for (const model::Likelihood& choice : choices) {
    // Rounding may leave a rest at the end: the last token that is possible at all takes it.
    if (choice.probability > 0) id = choice.id;
    if (point < choice.probability) break;
    point -= choice.probability;
  }
  return id;
}

}  // namespace vigil::speculate
