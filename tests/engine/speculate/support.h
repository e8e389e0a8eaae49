// A made-up target: what it says after a prefix is a number made of all its tokens.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/model/language/sampler.h"
#include "engine/speculate/verify.h"

namespace vigil::speculate::testing {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Tokens = std::vector<std::int32_t>;
using Logits = std::vector<float>;

inline std::uint64_t hash_of(std::uint64_t seed, std::span<const std::int32_t> tokens) {
  for (const std::int32_t token : tokens) {
    seed = (seed ^ static_cast<std::uint64_t>(static_cast<std::uint32_t>(token))) * 0x9e3779b97f4a7c15U;
    seed ^= seed >> 29U;
  }
  return seed;
}

/// `values`: how many different logits there are; with few, many tie. `ugly`: NaN, infinities.
struct MadeUpTarget {
  std::size_t vocabulary = 8;
  unsigned values = 4000;
  bool ugly = false;
  std::uint64_t seed = 1;

  Logits after(std::span<const std::int32_t> prefix) const {
    Logits logits(vocabulary);
    std::uint64_t state = hash_of(seed, prefix);
    for (float& logit : logits) {
      state = (state + 0x9e3779b97f4a7c15U) * 0xbf58476d1ce4e5b9U;
      state ^= state >> 31U;
      logit = 8 * static_cast<float>((state >> 16U) % values) / static_cast<float>(values) - 3;
    }
    if (!ugly) return logits;
    for (std::size_t id = state % 3; id < vocabulary; id += 3) logits[id] = std::nanf("");
    for (std::size_t id = 1 + state % 5; id < vocabulary; id += 4) logits[id] = -kInfinity;
    logits[state % vocabulary] = state % 11 == 0 ? kInfinity : 1.5F;
    return logits;
  }
};

/// The rows of one pass, all there.
class Rows : public TargetRows {
 public:
  explicit Rows(std::vector<Logits> rows, std::size_t most = 512) : rows_(std::move(rows)), most_(most) {}

  std::size_t count() const override { return rows_.size(); }
  std::int32_t likeliest(std::size_t row) override {
    const auto best = likeliest(row, 1);
    return best.empty() ? -1 : best[0].id;
  }
  std::span<const model::Candidate> likeliest(std::size_t row, std::size_t count) override {
    if (count > most_) throw std::logic_error("more of the likeliest than there are");
    best_.clear();
    const Logits& logits = rows_.at(row);
    for (std::size_t id = 0; id < logits.size(); ++id)
      if (logits[id] > -kInfinity) best_.push_back({logits[id], static_cast<std::int32_t>(id)});
    std::stable_sort(best_.begin(), best_.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
    best_.resize(std::min(count, best_.size()));
    return best_;
  }
  std::size_t most_likeliest() const override { return most_; }
  std::span<const float> logits(std::size_t row) override {
    ++whole_rows;
    return rows_.at(row);
  }

  /// How often all logits of a row were asked for.
  int whole_rows = 0;

 private:
  std::vector<Logits> rows_;
  std::size_t most_;
  std::vector<model::Candidate> best_;
};

/// What a pass over these drafts says after `prefix`: `count` rows.
inline Rows rows_of(const MadeUpTarget& target, Tokens prefix, std::span<const std::int32_t> drafts,
                    std::size_t count, std::size_t most = 512) {
  std::vector<Logits> rows;
  for (std::size_t row = 0; row < count; ++row) {
    rows.push_back(target.after(prefix));
    if (row < drafts.size()) prefix.push_back(drafts[row]);
  }
  return Rows(std::move(rows), most);
}

}  // namespace vigil::speculate::testing
