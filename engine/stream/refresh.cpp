#include "engine/stream/refresh.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>

namespace vigil::stream {
namespace {

std::int64_t tokens_of(std::span<const KeptPatch> kept) {
  std::int64_t tokens = 0;
  for (const KeptPatch& patch : kept) tokens += patch.tokens;
  return tokens;
}

/// Adds tokens to ranges that ascend.
void add(std::int64_t first, std::int64_t count, std::vector<kv::TokenRange>& to) {
  if (count == 0) return;
  if (!to.empty() && to.back().first + to.back().count == first) {
    to.back().count += count;
  } else {
    to.push_back({first, count});
  }
}

std::int64_t share_of(double share, std::int64_t tokens) {
  return std::min(tokens, static_cast<std::int64_t>(std::ceil(share * static_cast<double>(tokens))));
}

class All final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return false; }
  void choose(std::span<const KeptPatch>, std::vector<kv::TokenRange>&) const override {}
};

class None final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch>, std::vector<kv::TokenRange>&) const override {}
};

class CodecSight final : public RefreshPolicy {
 public:
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const override {
    std::int64_t at = 0;
    for (const KeptPatch& patch : kept) {
      if (patch.intra || &patch == &kept.front()) add(at, patch.tokens, to);
      at += patch.tokens;
    }
  }
};

class Those final : public RefreshPolicy {
 public:
  explicit Those(std::vector<std::int64_t> patches) : patches_(std::move(patches)) {}
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const override {
    std::int64_t at = 0;
    for (const KeptPatch& patch : kept) {
      if (std::binary_search(patches_.begin(), patches_.end(), patch.number)) add(at, patch.tokens, to);
      at += patch.tokens;
    }
  }

 private:
  std::vector<std::int64_t> patches_;
};

class FirstK final : public RefreshPolicy {
 public:
  explicit FirstK(double share) : share_(share) {}
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const override {
    const std::int64_t count = share_of(share_, tokens_of(kept));
    if (count > 0) to.push_back({0, count});
  }

 private:
  double share_;
};

/// Of a token of the stream, evenly spread (SplitMix64).
std::uint64_t lot_of(std::uint64_t patch, std::uint64_t token) {
  std::uint64_t z = (patch << 32U) + token + 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31U);
}

/// Adds a token to ascending ranges.
void add(std::int64_t token, std::vector<kv::TokenRange>& to) {
  if (!to.empty() && to.back().first + to.back().count == token) {
    ++to.back().count;
  } else {
    to.push_back({token, 1});
  }
}

class RandomK final : public RefreshPolicy {
 public:
  explicit RandomK(double share) : share_(share) {}
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch> kept, std::vector<kv::TokenRange>& to) const override {
    if (kept.empty()) return;
    // Other tokens for each window, which its first patch tells.
    const auto window = static_cast<std::uint64_t>(kept.front().number);
    std::vector<std::pair<std::uint64_t, std::int64_t>> lots;
    const std::int64_t tokens = tokens_of(kept);
    lots.reserve(static_cast<std::size_t>(tokens));
    for (std::int64_t token = 0; token < tokens; ++token)
      lots.emplace_back(lot_of(window, static_cast<std::uint64_t>(token)), token);
    const auto end = lots.begin() + share_of(share_, tokens);
    std::partial_sort(lots.begin(), end, lots.end());
    std::sort(lots.begin(), end, [](const auto& a, const auto& b) { return a.second < b.second; });
    for (auto lot = lots.begin(); lot != end; ++lot) add(lot->second, to);
  }

 private:
  double share_;
};

class TopK final : public RefreshPolicy {
 public:
  explicit TopK(double share) : share_(share) {}
  bool keeps_keys() const override { return true; }
  void choose(std::span<const KeptPatch>, std::vector<kv::TokenRange>&) const override {}
  std::optional<std::int64_t> ranked(std::int64_t tokens) const override { return share_of(share_, tokens); }

 private:
  double share_;
};

}  // namespace

std::vector<kv::TokenRange> farthest(std::span<const float> distances, std::int64_t count) {
  std::vector<std::int64_t> tokens(distances.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto far = [&](std::int64_t token) {
    const float distance = distances[static_cast<std::size_t>(token)];
    return std::isnan(distance) ? std::numeric_limits<float>::infinity() : distance;
  };
  const auto end =
      tokens.begin() + std::clamp<std::int64_t>(count, 0, static_cast<std::int64_t>(tokens.size()));
  std::partial_sort(tokens.begin(), end, tokens.end(), [&](std::int64_t a, std::int64_t b) {
    return far(a) != far(b) ? far(a) > far(b) : a < b;
  });
  std::sort(tokens.begin(), end);
  std::vector<kv::TokenRange> ranges;
  for (auto token = tokens.begin(); token != end; ++token) add(*token, ranges);
  return ranges;
}

RefreshPolicyPtr computes_those(std::vector<std::int64_t> patches) {
  return std::make_shared<Those>(std::move(patches));
}

RefreshPolicyPtr make_refresh(std::string_view name, const RefreshOptions& options) {
  if (!(options.share >= 0 && options.share <= 1))
    throw std::invalid_argument("a share of " + std::to_string(options.share) + " is not from 0 to 1");
  if (name == "all") return std::make_shared<All>();
  if (name == "none") return std::make_shared<None>();
  if (name == "codecsight") return std::make_shared<CodecSight>();
  if (name == "first-k") return std::make_shared<FirstK>(options.share);
  if (name == "random-k") return std::make_shared<RandomK>(options.share);
  if (name == "topk") return std::make_shared<TopK>(options.share);
  std::string known;
  for (const std::string_view each : kRefreshPolicies)
    known += (known.empty() ? "" : ", ") + std::string(each);
  throw std::invalid_argument("\"" + std::string(name) + "\" is no refresh policy: " + known);
}

}  // namespace vigil::stream
