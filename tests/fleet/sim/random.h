// What a seed decides.
#pragma once

#include <chrono>
#include <cstdint>

namespace vigil::fleet::sim {

using Micros = std::chrono::microseconds;

/// The same numbers on every machine (SplitMix64), which the standard's distributions do not promise.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15U);
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return mixed ^ (mixed >> 31U);
  }
  /// Less than `bound`, which is not 0.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  bool chance(double probability) { return static_cast<double>(next() >> 11U) * 0x1p-53 < probability; }
  Micros between(Micros least, Micros most) {
    return least + Micros(below(static_cast<std::uint64_t>((most - least).count()) + 1));
  }

 private:
  std::uint64_t state_;
};

}  // namespace vigil::fleet::sim
